// tandemctl map serve: the store's map and nothing else.
#include "tandem/app/map_command.hpp"
#include "tandem/app/map_http.hpp"
#include "tandem/core/crypto.hpp"

#include <algorithm>
#include <mutex>

namespace tandem::app {

namespace {

class MapServing {
 public:
  explicit MapServing(const MapStore& store) : store_(store) {}

  [[nodiscard]] HttpReply answer(const HttpRequest& request) {
    if (request.path != "/shardmap.json") return {404, "text/plain", "not found\n", {}};
    if (request.method != "GET" && request.method != "HEAD")
      return {405, "text/plain", "method not allowed\n", {{"Allow", "GET, HEAD"}}};
    const auto served = current();
    if (!served) return {503, "text/plain", "no valid map\n", {{"Cache-Control", "no-store"}}};
    HttpReply reply{200, "application/json", served->text, {{"ETag", served->etag}, {"Cache-Control", "max-age=5"}}};
    if (names(request, served->etag)) {
      reply.status = 304;
      reply.body.clear();
    }
    return reply;
  }

 private:
  struct Served {
    std::string text, etag;
  };

  // Read anew each time, as a publish replaces the file; judged only where its bytes are others than before.
  std::optional<Served> current() {
    std::string text;
    try {
      text = store_.text();
    } catch (const MapError&) {
      return {};
    }
    const std::lock_guard guard(mutex_);
    if (text != served_.text) {
      if (std::holds_alternative<shard::MapFault>(shard::ShardMap::parse(text))) return {};
      const Sha256 digest = sha256(bytes_of(text));
      served_ = {text, "\"" + hex_encode(ByteView(digest).first(16)) + "\""};
    }
    return served_;
  }

  // If-None-Match compares weakly: W/ does not count (RFC 9110, 13.1.2).
  static bool names(const HttpRequest& request, const std::string& etag) {
    for (const auto& [name, value] : request.headers)
      if (name == "if-none-match" && (value == "*" || value.find(etag) != std::string::npos)) return true;
    return false;
  }

  const MapStore& store_;
  std::mutex mutex_;
  Served served_;
};

}  // namespace

int map_serve(MapCommand& c, const std::string& listen, const std::string& certificate,
              const std::string& private_key) {
  MapStore& store = c.need_store();
  (void)store.current();
  auto place = parse_http_place(listen);
  if (!place)
    throw usage_error("--listen", listen, "is not an address with a port, such as 127.0.0.1:9471 or [::]:443");
  if (certificate.empty() != private_key.empty())
    throw usage_error("--certificate", certificate, "and --private-key are given together");
  if (certificate.empty() && !place->ip.is_loopback())
    throw usage_error("--listen", listen,
                      "is not loopback: relays fetch over https there; give --certificate and --private-key");
  place->certificate = certificate;
  place->private_key = private_key;
  MapServing serving(store);
  HttpServer server(*place, [&](const HttpRequest& request) { return serving.answer(request); });
  const std::string url = server.origin() + "/shardmap.json";
  c.out.result({{"ok", true}, {"action", "serve"}, {"url", url}}, "serving " + url + "\n");
  server.run(interrupted);
  return kOk;
}

}  // namespace tandem::app
