// A connection while it speaks HTTP: heads, the gate, bodies, answers, and the step to a WebSocket.
#include "net/connection.hpp"
#include "net/http_session.hpp"
#include "net/loop.hpp"
#include "tandem/core/base64.hpp"
#include "tandem/net/gate.hpp"
#include "tandem/net/http_answer.hpp"

#include <array>

#include <openssl/sha.h>

namespace tandem::net {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr std::string_view kJson = "application/json";

// RFC 6455 4.2.2
std::string accept_value(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return base64_encode(digest);
}

std::string_view malformed_text(std::uint16_t status) noexcept {
  return status == 431   ? "header too large"
         : status == 501 ? "unknown transfer coding"
         : status == 417 ? "unknown expectation"
                         : "bad request";
}

}  // namespace

void Connection::advance_http() {
  while (phase_ == Phase::http && http_->state != HttpSession::State::waiting) {
    if (http_->state == HttpSession::State::head) {
      const auto found = http_->scanner.scan(http_->buffer);
      if (std::holds_alternative<HeadScanner::NeedMore>(found)) return;
      if (const auto* fault = std::get_if<HeadScanner::Fault>(&found)) {
        return refuse(RejectReason::bad_request, fault->status, malformed_text(fault->status), {}, false);
      }
      take_head(std::get<HeadScanner::Found>(found).size);
      continue;
    }
    const BodyReader::Step step = http_->body->read(http_->buffer, http_->body_text);
    http_->buffer.erase(0, step.taken);
    switch (step.status) {
      case BodyReader::Status::need_more: return;
      case BodyReader::Status::too_large:
        return refuse(RejectReason::too_large, 413, reject_text(RejectReason::too_large), {}, false);
      case BodyReader::Status::malformed: return refuse(RejectReason::bad_request, 400, malformed_text(400), {}, false);
      case BodyReader::Status::done: submit(); break;
    }
  }
}

void Connection::take_head(std::size_t size) {
  const std::string text = http_->buffer.substr(0, size);
  http_->buffer.erase(0, size);
  http_->served = true;
  auto parsed = parse_head(text);
  if (const auto* status = std::get_if<std::uint16_t>(&parsed)) {
    return refuse(RejectReason::bad_request, *status, malformed_text(*status), {}, false);
  }
  const auto& head = std::get<RequestHead>(parsed);
  if (loop_.settings.proxy.trust != ProxySettings::Trust::proxy_protocol)
    client_ = client_of(head, remote_, loop_.settings.proxy).key();

  const auto verdict = pass_gate(head, client_, loop_.relay, loop_.now());
  if (const auto* refused = std::get_if<GateRefused>(&verdict)) {
    // The body of what is refused is not read, so that nothing in it can be taken for a request: the connection ends
    // instead.
    const bool keep_alive =
        !head.upgrade && head.keep_alive && !head.has_body() && head.method != "HEAD" && !loop_.stopping();
    loop_.observe(observed::Rejected{head.upgrade, refused->reason});
    const std::string_view body = head.method == "HEAD" ? std::string_view{} : refused->body;
    return respond(refused->status, kPlainText, body, refused->fields, keep_alive);
  }
  const auto& passed = std::get<GatePassed>(verdict);
  if (passed.upgrade) return upgrade(passed.room, passed.websocket_key);

  http_->room = passed.room;
  http_->endpoint = passed.endpoint;
  http_->keep_alive = head.keep_alive;
  http_->state = HttpSession::State::body;
  http_->body.emplace(head);
  http_->body_text.clear();
  deadline_ = loop_.mono() + loop_.settings.request;
  if (head.expects_continue && head.has_body() && http_->buffer.empty()) {
    transport_.write("HTTP/1.1 100 Continue\r\n\r\n");
    loop_.touch(*this);
  }
}

void Connection::submit() {
  http_->state = HttpSession::State::waiting;
  http_->request = loop_.register_request(*this);
  deadline_ = kNever;
  const std::string body = std::move(http_->body_text);
  http_->body_text.clear();
  loop_.dispatch(relay::event::RequestReceived{http_->request, http_->room, http_->endpoint, body});
}

void Connection::reply(const relay::effect::Reply& answer) {
  if (phase_ != Phase::http || http_->state != HttpSession::State::waiting) return;
  std::string fields;
  if (answer.retry_after_seconds != 0) fields = "Retry-After: " + std::to_string(answer.retry_after_seconds) + "\r\n";
  if (!answer.owner.empty()) fields.append("x-relay-owner: ").append(answer.owner).append("\r\n");
  const std::string_view type = answer.status == reject_status(RejectReason::misdirected) ? kPlainText : kJson;
  respond(answer.status, type, answer.body, fields, http_->keep_alive && !loop_.stopping());
}

void Connection::respond(std::uint16_t status, std::string_view type, std::string_view body, std::string_view fields,
                         bool keep_alive) {
  std::string out = answer_head(status, type, body.size(), fields, keep_alive);
  out.append(body);
  transport_.write(out);
  loop_.touch(*this);
  if (keep_alive) return next_request();
  // Nothing more is served, and what the client still sends is read and thrown away, so that a reset does not eat the
  // answer.
  http_.reset();
  ended_ = true;
  answered_ = true;
  phase_ = Phase::closing;
  deadline_ = loop_.mono() + seconds(2);
  reschedule();
}

void Connection::next_request() {
  http_->state = HttpSession::State::head;
  http_->scanner.reset();
  http_->body.reset();
  deadline_ = loop_.mono() + loop_.settings.request;
  reschedule();
}

void Connection::refuse(RejectReason reason, std::uint16_t status, std::string_view body, std::string_view fields,
                        bool keep_alive) {
  loop_.observe(observed::Rejected{false, reason});
  respond(status, kPlainText, body, fields, keep_alive);
}

void Connection::upgrade(const RoomName& room, std::string_view key) {
  std::string out =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ";
  out.append(accept_value(key)).append("\r\n\r\n");
  transport_.write(out);
  const std::string rest = std::move(http_->buffer);
  http_.reset();
  room_ = room;
  opened_ = loop_.mono();
  deadline_ = kNever;  // the relay's from now on (1-wire 1.4)
  ping_due_ = opened_ + loop_.settings.keepalive;
  phase_ = Phase::pending;
  id_ = loop_.register_socket(*this);
  loop_.touch(*this);
  loop_.dispatch(relay::event::SocketOpened{id_, room_, client_});
  if (!rest.empty()) consume({reinterpret_cast<const std::uint8_t*>(rest.data()), rest.size()});
}

}  // namespace tandem::net
