// A whole endpoint that follows the client rules by itself: the agent's mind (client/agent.hpp) with sockets, timers,
// POSTs and map fetches to carry out what it decides. What a mac or a phone runs; what `tandem_fleet` runs by the
// hundred.
//
// Ownership: destroying a device ends all it does. Watchers are called from the loop and may call send(), but not
// stop() or destroy the device: post that. Single-threaded.
#pragma once

#include "tandem/client/agent.hpp"
#include "tandem/client/endpoint.hpp"
#include "tandem/client/post.hpp"

#include <functional>
#include <memory>
#include <string>
#include <variant>

namespace tandem::client {

struct FetchedMap {
  std::shared_ptr<const shard::ShardMap> map;
  Duration max_age{};
};
struct MapUnchanged {
  Duration max_age{};
};
struct MapFailed {
  std::string why;
};
using MapAnswer = std::variant<FetchedMap, MapUnchanged, MapFailed>;

// Where a device gets the shard map: client/map_source.hpp, or a test's own.
class MapSource {
 public:
  virtual ~MapSource() = default;
  // One fetch at a time; `done` comes from the loop, and never after cancel() or destruction.
  virtual void fetch(std::function<void(const MapAnswer&)> done) = 0;
  virtual void cancel() = 0;
};
// By HTTP, with ETag, one attempt of 3 s a fetch.
[[nodiscard]] std::unique_ptr<MapSource> http_map_source(boost::asio::io_context& loop, std::string url,
                                                         std::string ca_file = {});

struct DeviceSettings {
  AgentSettings agent;
  Ed25519Seed key{};   // of the pairing: signs joins; its public half is registered
  std::string source;  // local address to come from; empty: any
  std::function<std::string(const std::string& host)> connect =
      {};                        // an authority to connect to in place of the host; none: the host
  Attestor* attestor = nullptr;  // of a phone where the relay attests; outlives the device
};

class Device {
 public:
  struct Watchers {
    std::function<void(Standing, const std::string& why)> standing = {};
    std::function<void(const std::string& host)> connecting = {};
    std::function<void()> admitted = {};
    std::function<void()> registered = {};
    std::function<void(Opcode, ByteView)> message = {};
    std::function<void(const Ending&)> ended = {};  // of each attempt or splice, before the agent judges it
    std::function<void(const Memory&)> remember = {};
  };

  // `map` may be null in direct mode.
  Device(boost::asio::io_context& loop, TlsTrust trust, std::unique_ptr<MapSource> map, RandomSource& random,
         DeviceSettings settings, Watchers watchers);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void start();
  void stop();
  bool send(Opcode opcode, ByteView payload);  // false: not admitted, dropped
  void drop();  // the network goes away under it: no close frame; it reconnects by the rules

  [[nodiscard]] const Agent& agent() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::client
