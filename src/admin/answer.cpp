#include "answer.hpp"

#include "tandem/admin/page.hpp"
#include "tandem/net/http_answer.hpp"

#include <optional>

namespace tandem::admin {

namespace {

struct Content {
  std::uint16_t status = 200;
  std::string_view type = "text/plain; charset=utf-8";
  std::string body;
  std::string headers{};  // further ones, each with its line end
};

Answer written(const Content& content, bool keep_alive, bool with_body = true) {
  Answer out;
  out.keep_alive = keep_alive;
  const std::string fields = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n" + content.headers;
  out.bytes = net::answer_head(content.status, content.type, content.body.size(), fields, keep_alive);
  if (with_body) out.bytes += content.body;
  return out;
}

Content text(std::uint16_t status, std::string_view line) {
  return {status, "text/plain; charset=utf-8", std::string(line) + "\n"};
}
Content json(std::string body) { return {200, "application/json", std::move(body)}; }

Content readiness(const AdminSource& source) {
  const auto why = source.status().not_ready;
  return why ? text(503, *why) : text(200, "ready");
}

Content explanation(const AdminSource& source, std::string_view query) {
  std::optional<RoomName> room;
  if (query.starts_with("room=")) room = RoomName::parse(query.substr(5));
  if (!room) return text(400, "/explain?room= takes a room name: 64 lower-case hex digits");
  return json(explain_json(source.explain(*room), source.status()));
}

Content page(const AdminSource& source) {
  return {
      200, "text/html; charset=utf-8", status_page(source.status()),
      "Content-Security-Policy: " + page_policy() + "\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"};
}

Content content_of(const AdminSource& source, std::string_view path, std::string_view query) {
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", source.metrics()};
  if (path == "/healthz") return text(200, "ok");
  if (path == "/readyz") return readiness(source);
  if (path == "/status") return json(status_json(source.status()));
  if (path == "/explain") return explanation(source, query);
  if (path == "/") return page(source);
  return text(404, "not found");
}

}  // namespace

Answer refuse(std::uint16_t status, std::string_view why) { return written(text(status, why), false); }

Answer answer(const AdminSource& source, const Request& request) {
  if (request.host.empty()) return refuse(400, "one Host header is needed");
  if (!is_loopback_authority(request.host)) return refuse(403, "this listener answers to loopback names alone");
  if (request.method != "GET" && request.method != "HEAD") {
    Content content = text(405, "only GET and HEAD");
    content.headers = "Allow: GET, HEAD\r\n";
    return written(content, false);
  }
  if (!request.target.starts_with('/')) return refuse(400, "the request names a path of this listener");
  const auto question = request.target.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view{} : request.target.substr(question + 1);
  return written(content_of(source, request.target.substr(0, question), query), request.keep_alive,
                 request.method == "GET");
}

}  // namespace tandem::admin
