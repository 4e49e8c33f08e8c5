// The network half of the relay behind one door: listeners, TLS, the HTTP gate, WebSockets, and the splice. It owns
// every socket, feeds the pure half with what happens and performs what that decides; whatever is not about sockets
// goes to on_effect().
//
// Single-threaded: every call on the loop's thread. No callback is called from inside the call that caused it, but for
// the observer and on_effect, which may call dispatch() (it queues). The io_context must not run any more once the
// server is gone. Why a listener cannot be had is an error_code with the address in text; what peers do wrong ends
// their own socket.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/net/settings.hpp"
#include "tandem/net/tls_context.hpp"
#include "tandem/relay/relay.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/system/error_code.hpp>

namespace boost::asio {
class io_context;
}

namespace tandem::net {

class Loop;

// What has gone through so far, and what is here now. Sockets that are admitted or pending are the relay's to count.
struct Counters {
  std::uint64_t connections = 0;  // open TCP connections of every kind
  std::uint64_t handshaking = 0;  // of them before their upgrade: TLS, HTTP
  std::uint64_t websockets = 0;   // upgraded, closing ones included
  std::uint64_t upgrades_total = 0;
  struct Relayed {
    std::uint64_t bytes = 0, messages = 0;  // payload bytes and whole messages that went to a peer
  } from_mac, from_phone;
  double bytes_per_second = 0;  // relayed payload, over the last second or so
};

class Server {
 public:
  // loop, relay and observer outlive the server.
  Server(boost::asio::io_context& loop, relay::Relay& relay, Observer& observer, Settings settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Null: plain TCP (`tls: "off"`). New handshakes take the newest context.
  void set_tls(std::shared_ptr<const TlsContext> context);

  // "0.0.0.0:443", "[::]:443" (IPv6 only). Port 0 picks one. The port that was bound.
  [[nodiscard]] boost::system::result<std::uint16_t> listen(std::string_view address);
  // Takes a listening socket that somebody else opened (systemd).
  [[nodiscard]] boost::system::error_code adopt(int descriptor);

  // What happens outside the network half: hands the event to the relay and performs what it decides.
  void dispatch(const relay::Event& event);
  // Effects about the store and the worker. Set before the first event.
  void on_effect(std::function<void(relay::Effect&&)> take);

  void update(Settings settings);
  // Graceful stop: no new connections, what was taken in is flushed, every socket is closed 1001 `server shutting down`
  // (by the relay, event::ShutdownBegun), what is left after settings.shutdown is cut. Then done(). A second call
  // changes nothing.
  void stop(std::function<void()> done);

  [[nodiscard]] Counters counters() const;

 private:
  std::shared_ptr<Loop> loop_;
};

}  // namespace tandem::net
