#include "session.hpp"

#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace tandem::admin {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Error = boost::system::error_code;

namespace {

constexpr std::uint32_t kMaxHeadBytes = 8 * 1024;
constexpr auto kPatience = std::chrono::seconds(15), kReservePatience = std::chrono::seconds(2),
               kLingerTime = std::chrono::seconds(1);
constexpr std::size_t kMaxLingerBytes = 256 * 1024;

std::string_view view(boost::beast::string_view s) { return {s.data(), s.size()}; }

}  // namespace

Session::Session(asio::ip::tcp::socket socket, const AdminSource& source, bool on_reserve,
                 std::function<void(Session*)> ended)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      source_(source),
      on_reserve_(on_reserve),
      ended_(std::move(ended)) {}

void Session::start() { read(); }

void Session::close() {
  if (std::exchange(closed_, true)) return;
  Error ignored;
  socket_.close(ignored);
  timer_.cancel();
  if (const auto call = std::exchange(ended_, nullptr)) call(this);
}

void Session::arm(asio::steady_timer::duration time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](Error ec) {
    if (!ec) self->close();
  });
}

void Session::read() {
  arm(on_reserve_ ? kReservePatience : kPatience);
  socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](Error ec, std::size_t n) {
    if (self->closed_) return;
    if (ec) return self->close();
    self->pending_.append(self->buffer_.data(), n);
    self->received();
  });
}

void Session::received() {
  // A head is small and comes whole as a rule: it is parsed from its beginning each time more of it arrives.
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMaxHeadBytes);
  Error ec;
  const std::size_t used = parser.put(asio::const_buffer(pending_.data(), pending_.size()), ec);
  if (ec == http::error::need_more && pending_.size() <= kMaxHeadBytes) return read();
  if (ec == http::error::header_limit || ec == http::error::need_more)
    return respond(refuse(431, "the request's head is too large"));
  if (ec) return respond(refuse(400, "malformed HTTP"));
  const auto& head = parser.get();
  const bool has_body = parser.chunked() || parser.content_length().value_or(0) > 0;
  Request request;
  request.method = view(head.method_string());
  request.target = view(head.target());
  request.keep_alive = head.keep_alive() && !on_reserve_ && !has_body;
  if (head.count(http::field::host) == 1) request.host = view(head[http::field::host]);
  Answer reply = answer(source_, request);
  if (has_body) lingered_bytes_ = 1;  // its bytes are on their way
  pending_.erase(0, used);
  respond(std::move(reply));
}

void Session::respond(Answer reply) {
  out_ = std::move(reply.bytes);
  arm(on_reserve_ ? kReservePatience : kPatience);
  asio::async_write(socket_, asio::buffer(out_),
                    [self = shared_from_this(), keep = reply.keep_alive](Error ec, std::size_t) {
                      if (self->closed_) return;
                      if (ec) return self->close();
                      if (!keep) return self->linger();
                      self->pending_.empty() ? self->read() : self->received();
                    });
}

void Session::linger() {
  if (lingered_bytes_ == 0 && pending_.empty()) return close();
  if (lingered_bytes_ <= 1) {
    Error ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    arm(kLingerTime);
  }
  socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](Error ec, std::size_t n) {
    if (self->closed_) return;
    self->lingered_bytes_ += n + 1;
    if (ec || self->lingered_bytes_ > kMaxLingerBytes) return self->close();
    self->linger();
  });
}

}  // namespace tandem::admin
