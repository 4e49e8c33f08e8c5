// One TLS connection of a client: bytes out in order, bytes in as they come. Knows nothing of HTTP or WebSockets.
//
// Ownership: shared with its own pending operations; close() ends it, and no handler is called after. Handlers come
// from the loop, never from inside a call. Single-threaded. No deadlines of its own: who opens it, closes it.
#pragma once

#include "tandem/core/base64.hpp"

#include <functional>
#include <memory>
#include <string>

namespace boost::asio {
class io_context;
namespace ssl {
class context;
}
}  // namespace boost::asio

namespace tandem::client {

// Which servers are believed. TLS 1.2 and 1.3, ALPN http/1.1.
using TlsTrust = std::shared_ptr<boost::asio::ssl::context>;
[[nodiscard]] TlsTrust trust_system();  // the system's CAs; SSL_CERT_FILE and SSL_CERT_DIR are honoured
[[nodiscard]] TlsTrust trust_file(
    const std::string& ca_file);          // throws boost::system::system_error where it cannot be read
[[nodiscard]] TlsTrust trust_anything();  // loads on loopback only: who listens there is us

struct Destination {
  std::string host;     // an authority: "relay1.test", "localhost:8443", "[::1]:443"; its name is verified
  std::string connect;  // an authority to connect to instead, as /etc/hosts would say; empty: host
  std::string source;   // a local address to come from; empty: any
};

class TlsSocket : public std::enable_shared_from_this<TlsSocket> {
 public:
  struct Handlers {
    std::function<void()> opened;                       // the handshake is done and the certificate believed
    std::function<void(ByteView)> received;             // the view lives until the handler returns
    std::function<void(const std::string& why)> ended;  // once; empty: the server closed
    std::function<void()> connected = {};               // TCP is there; optional
  };
  [[nodiscard]] static std::shared_ptr<TlsSocket> open(boost::asio::io_context& loop, TlsTrust trust,
                                                       const Destination& destination, Handlers handlers);
  virtual ~TlsSocket() = default;

  virtual void send(ByteView bytes) = 0;  // queued without bound: see unsent()
  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;
  virtual void on_drained(std::function<void()> handler) = 0;  // called each time the queue has run empty
  virtual void pause_reading(bool paused) = 0;
  virtual void close() = 0;  // at once; what is unsent is lost
  virtual void close_after_sending() = 0;
};

}  // namespace tandem::client
