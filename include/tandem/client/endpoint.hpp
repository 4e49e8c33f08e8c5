// One attempt of one endpoint at one host: TLS, the upgrade, hello, nonce, proof, and then messages, until it ends
// (1-wire 1.4, 1.5). It decides nothing about trying again: that is client/agent.hpp's. Pings are answered. Room and
// key come from the pairing; the proof is a signature, or a ticket where one is given.
//
// Ownership: shared with its pending operations; abort() ends it, and no handler is called after. Handlers come from
// the loop. `ended` comes once and last.
#pragma once

#include "tandem/client/ending.hpp"
#include "tandem/client/frames.hpp"
#include "tandem/client/tls_socket.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tandem::client {

struct JoinSettings {
  Role role = Role::mac;
  RoomName room;
  std::optional<Ed25519Seed> key;  // signs the join; none: an empty proof
  std::string ticket;              // in place of the signature; empty: none
  bool non_displacing = false;
  Duration patience = seconds(15);  // from now to the admission
};

class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  enum class Step : std::uint8_t { connected, secured, upgraded, challenged };  // TCP, TLS, HTTP 101, nonce
  struct Handlers {
    std::function<void(const std::string& registration_token)> admitted;  // empty for a mac
    std::function<void(Opcode, ByteView)> message;                        // text or binary; the view is the call's
    std::function<void(const Ending&)> ended;
    std::function<void(Step)> step = {};
  };
  [[nodiscard]] static std::shared_ptr<Endpoint> open(boost::asio::io_context& loop, TlsTrust trust,
                                                      const Destination& destination, const JoinSettings& join,
                                                      Handlers handlers);
  virtual ~Endpoint() = default;

  virtual void send(Opcode opcode, ByteView payload) = 0;
  virtual void ping(ByteView payload, std::function<void()> answered) = 0;
  virtual void close(std::uint16_t code,
                     std::string_view reason) = 0;  // a close frame, then the end; no handler is called after
  virtual void abort() = 0;                         // at once, without a close frame
  virtual void pause_reading(bool paused) = 0;
  virtual void on_drained(std::function<void()> handler) = 0;
  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;
  [[nodiscard]] virtual bool is_admitted() const noexcept = 0;
};

}  // namespace tandem::client
