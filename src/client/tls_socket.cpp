#include "tandem/client/tls_socket.hpp"

#include "tandem/core/authority.hpp"

#include <array>
#include <cstdlib>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <openssl/ssl.h>

namespace tandem::client {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

TlsTrust plain_context() {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX* raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  static constexpr unsigned char alpn[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(raw, alpn, sizeof alpn - 1);
  return context;
}

std::string why_refused(const error_code& error, SSL* ssl) {
  const long verified = SSL_get_verify_result(ssl);
  if (verified != X509_V_OK) return std::string("certificate: ") + X509_verify_cert_error_string(verified);
  return "TLS: " + error.message();
}

class Socket final : public TlsSocket {
 public:
  Socket(asio::io_context& loop, TlsTrust trust, Handlers handlers)
      : loop_(loop),
        resolver_(loop),
        trust_(std::move(trust)),
        stream_(loop, *trust_),
        handlers_(std::move(handlers)) {}

  void start(const Destination& destination) {
    const auto host = Authority::parse(destination.host);
    const auto place = Authority::parse(destination.connect.empty() ? destination.host : destination.connect);
    if (!host || !place) return end_later("'" + destination.host + "' is no host");
    name_ = host->host();
    if (host->kind() == Authority::Kind::name) name_the_server();
    error_code error;
    stream_.set_verify_callback(asio::ssl::host_name_verification(name_), error);
    if (!destination.source.empty()) {
      source_ = asio::ip::make_address(destination.source, error);
      if (error) return end_later("'" + destination.source + "' is no address");
    }
    const std::uint16_t port = place->port().value_or(443);
    if (is_localhost(place->host()))
      local_ = {{asio::ip::address_v6::loopback(), port}, {asio::ip::address_v4::loopback(), port}};
    resolver_.async_resolve(place->host(), std::to_string(port),
                            [self = self()](const error_code& e, const tcp::resolver::results_type& found) {
                              if (!self->closed_) self->resolved(e, found);
                            });
  }

  void send(ByteView bytes) override {
    if (closed_) return;
    queued_.insert(queued_.end(), bytes.begin(), bytes.end());
    if (open_) write();
  }
  std::size_t unsent() const noexcept override { return queued_.size() + writing_.size(); }
  void on_drained(std::function<void()> handler) override { drained_ = std::move(handler); }

  void pause_reading(bool paused) override {
    paused_ = paused;
    if (open_ && !paused_ && !reading_) read();
  }

  void close() override {
    closed_ = true;
    error_code ignored;
    resolver_.cancel();
    stream_.next_layer().close(ignored);
    drop_handlers();
  }

  void close_after_sending() override {
    if (unsent() == 0 || !open_) return close();
    closing_ = true;
    drop_handlers();
  }

 private:
  std::shared_ptr<Socket> self() { return std::static_pointer_cast<Socket>(shared_from_this()); }

  // One of them may be what is running, and may hold the last reference to this: they die behind the current handler.
  void drop_handlers() {
    asio::post(loop_, [dead = std::exchange(handlers_, {}), drained = std::exchange(drained_, nullptr)] {});
  }

  void name_the_server() {
    // SSL_set_tlsext_host_name is a macro around this call, with a cast that we do not allow ourselves.
    SSL_ctrl(stream_.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name_.data());
  }

  void end(const std::string& why) {
    const auto ended = std::move(handlers_.ended);
    close();
    if (ended) ended(why);
  }
  void end_later(std::string why) {
    asio::post(loop_, [self = self(), why = std::move(why)] {
      if (!self->closed_) self->end(why);
    });
  }

  void resolved(const error_code& error, const tcp::resolver::results_type& found) {
    if (error && local_.empty()) return end("DNS: " + error.message());
    for (const auto& entry : found) places_.push_back(entry.endpoint());
    if (error) places_ = std::move(local_);
    connect_next(asio::error::host_not_found);
  }

  void connect_next(const error_code& last) {
    if (places_.empty()) return end("connect: " + last.message());
    const tcp::endpoint place = places_.front();
    places_.erase(places_.begin());
    tcp::socket& socket = stream_.next_layer();
    error_code error;
    socket.close(error);
    socket.open(place.protocol(), error);
    if (!error && !source_.is_unspecified()) socket.bind({source_, 0}, error);
    if (error) return connect_next(error);  // of another family than the source, say
    socket.async_connect(place, [self = self()](const error_code& e) {
      if (self->closed_) return;
      e ? self->connect_next(e) : self->connected();
    });
  }

  void connected() {
    error_code ignored;
    stream_.next_layer().set_option(tcp::no_delay(true), ignored);
    if (handlers_.connected) handlers_.connected();
    if (closed_) return;
    stream_.async_handshake(asio::ssl::stream_base::client, [self = self()](const error_code& e) {
      if (!self->closed_) self->shaken(e);
    });
  }

  void shaken(const error_code& error) {
    if (error) return end(why_refused(error, stream_.native_handle()));
    open_ = true;
    if (handlers_.opened) handlers_.opened();
    if (closed_) return;
    write();
    if (!paused_ && !reading_) read();
  }

  void read() {
    reading_ = true;
    stream_.async_read_some(asio::buffer(input_), [self = self()](const error_code& e, std::size_t n) {
      self->reading_ = false;
      if (self->closed_) return;
      if (n > 0 && self->handlers_.received) self->handlers_.received(ByteView(self->input_.data(), n));
      if (self->closed_) return;
      if (e) {
        const bool orderly = e == asio::error::eof || e == asio::ssl::error::stream_truncated;
        return self->end(orderly ? "" : e.message());
      }
      if (!self->paused_ && !self->reading_) self->read();
    });
  }

  void write() {
    if (!writing_.empty() || queued_.empty()) return;
    writing_.swap(queued_);
    asio::async_write(stream_, asio::buffer(writing_), [self = self()](const error_code& e, std::size_t) {
      self->writing_.clear();
      if (self->closed_) return;
      if (e) return self->end(e.message());
      if (!self->queued_.empty()) return self->write();
      if (self->closing_) return self->close();
      if (self->drained_) {
        const auto drained = self->drained_;  // it may replace itself
        drained();
      }
    });
  }

  asio::io_context& loop_;
  tcp::resolver resolver_;
  TlsTrust trust_;
  asio::ssl::stream<tcp::socket> stream_;
  Handlers handlers_;
  std::function<void()> drained_;
  std::string name_;
  asio::ip::address source_;
  std::vector<tcp::endpoint> places_, local_;
  Bytes queued_, writing_;
  std::array<std::uint8_t, 16 * 1024> input_;
  bool open_ = false, closed_ = false, closing_ = false, paused_ = false, reading_ = false;
};

}  // namespace

TlsTrust trust_system() {
  TlsTrust context = plain_context();
  error_code ignored;  // no CAs at all: every certificate is then refused, which says so better
  context->set_default_verify_paths(ignored);
  context->set_verify_mode(asio::ssl::verify_peer);
  return context;
}

TlsTrust trust_file(const std::string& ca_file) {
  TlsTrust context = plain_context();
  context->load_verify_file(ca_file);
  context->set_verify_mode(asio::ssl::verify_peer);
  return context;
}

TlsTrust trust_anything() {
  TlsTrust context = plain_context();
  context->set_verify_mode(asio::ssl::verify_none);
  return context;
}

std::shared_ptr<TlsSocket> TlsSocket::open(asio::io_context& loop, TlsTrust trust, const Destination& destination,
                                           Handlers handlers) {
  auto socket = std::make_shared<Socket>(loop, std::move(trust), std::move(handlers));
  socket->start(destination);
  return socket;
}

}  // namespace tandem::client
