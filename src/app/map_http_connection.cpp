#include "app/map_http_connection.hpp"

#include "tandem/net/http_head.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <sys/socket.h>
#include <sys/time.h>

namespace tandem::app {

namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds kRequestTime{10};

const char* reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "Status";
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

HttpRequest request_of(const net::RequestHead& head) {
  HttpRequest request{std::string(head.method), std::string(head.path), {}, {}};
  for (std::size_t i = 0; i < head.field_count; ++i)
    request.headers.emplace_back(lower(head.fields[i].name), head.fields[i].value);
  return request;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view lower_name) const {
  const std::pair<std::string, std::string>* found = nullptr;
  for (const auto& field : headers) {
    if (field.first != lower_name) continue;
    if (found) return {};
    found = &field;
  }
  return found ? std::string_view(found->second) : std::string_view{};
}

HttpConnection::HttpConnection(int fd, const net::TlsContext* tls)
    : fd_(fd), ssl_(tls ? tls->new_session() : nullptr), wants_tls_(tls != nullptr) {
  set_timeouts();
}

void HttpConnection::set_timeouts() {
  const timeval wait{std::chrono::seconds(kRequestTime).count(), 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

bool HttpConnection::shake_hands() {
  return !wants_tls_ || (ssl_ && SSL_set_fd(ssl_.get(), fd_) == 1 && SSL_accept(ssl_.get()) == 1);
}

bool HttpConnection::read_more() {
  if (steady_clock::now() >= deadline_) return false;
  char block[16384];
  ssize_t n = 0;
  if (ssl_) {
    n = SSL_read(ssl_.get(), block, sizeof block);
  } else {
    do n = ::recv(fd_, block, sizeof block, 0);
    while (n < 0 && errno == EINTR);
  }
  if (n <= 0) return false;
  buffer_.append(block, static_cast<std::size_t>(n));
  return true;
}

bool HttpConnection::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n =
        ssl_ ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)))
             : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && !ssl_ && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool HttpConnection::send(const HttpReply& reply, bool head_only, bool keep) {
  std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " " + reason(reply.status) + "\r\n";
  for (const auto& [name, value] : reply.headers) out += name + ": " + value + "\r\n";
  if (reply.status != 304) {
    out += "Content-Type: " + reply.content_type + "\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n";
  }
  out += std::string("X-Content-Type-Options: nosniff\r\nConnection: ") + (keep ? "keep-alive" : "close") + "\r\n\r\n";
  if (!head_only && reply.status != 304) out += reply.body;
  return write_all(out);
}

HttpConnection::Next HttpConnection::one_request(const HttpHandler& handler, const std::function<bool()>& may_wait) {
  deadline_ = steady_clock::now() + kRequestTime;
  net::HeadScanner scanner;
  std::size_t head_size = 0;
  while (head_size == 0) {
    const auto scanned = scanner.scan(buffer_);
    if (const auto* found = std::get_if<net::HeadScanner::Found>(&scanned)) {
      head_size = found->size;
    } else if (const auto* fault = std::get_if<net::HeadScanner::Fault>(&scanned)) {
      (void)send({fault->status, "text/plain", reason(fault->status), {}}, false, false);
      return Next::close;
    } else if (!read_more()) {
      return Next::close;
    }
  }
  const std::string head_text = buffer_.substr(0, head_size);  // the views of the head point into it
  buffer_.erase(0, head_size);
  const auto parsed = net::parse_head(head_text);
  if (const auto* status = std::get_if<std::uint16_t>(&parsed)) {
    (void)send({*status, "text/plain", reason(*status), {}}, false, false);
    return Next::close;
  }
  const auto& head = std::get<net::RequestHead>(parsed);
  HttpRequest request = request_of(head);
  net::BodyReader reader(head);
  for (bool done = !head.has_body(); !done;) {
    const auto step = reader.read(buffer_, request.body);
    buffer_.erase(0, step.taken);
    if (step.status == net::BodyReader::Status::done) {
      done = true;
    } else if (step.status != net::BodyReader::Status::need_more) {
      const int status = step.status == net::BodyReader::Status::too_large ? 413 : 400;
      (void)send({status, "text/plain", reason(status), {}}, false, false);
      return Next::close;
    } else if (!read_more()) {
      return Next::close;
    }
  }
  const bool keep = head.keep_alive && may_wait();
  return send(handler(request), request.method == "HEAD", keep) && keep ? Next::keep : Next::close;
}

void HttpConnection::run(const HttpHandler& handler, const std::function<bool()>& may_wait) {
  if (!shake_hands()) return;
  while (one_request(handler, may_wait) == Next::keep) {
  }
  if (ssl_) SSL_shutdown(ssl_.get());
}

}  // namespace tandem::app
