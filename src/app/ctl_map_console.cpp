// tandemctl map console: serves the page on loopback until interrupted.
#include "tandem/app/map_command.hpp"
#include "tandem/app/map_console.hpp"
#include "tandem/core/base64.hpp"

#include <array>

#include <openssl/rand.h>

namespace tandem::app {

int map_console(MapCommand& c, const std::string& listen) {
  MapStore& store = c.need_store();
  (void)store.current();
  const auto place = parse_http_place(listen);
  if (!place) throw usage_error("--listen", listen, "is not an address with a port, such as 127.0.0.1:9470");
  if (!place->ip.is_loopback())
    throw usage_error("--listen", listen,
                      "is not loopback: whoever reaches the console can publish; use an SSH tunnel");
  std::array<std::uint8_t, 16> secret{};
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1)
    throw MapError("store_failed", "console: the system gave no random bytes");
  const std::string token = hex_encode(secret);
  MapConsole console(store, c.options, token);
  HttpServer server(*place, [&](const HttpRequest& request) { return console.answer(request); });
  const std::string url = server.origin() + "/" + token + "/";
  c.out.result(
      {{"ok", true}, {"action", "console"}, {"url", url}},
      "console of " + store.folder().string() + ": " + url + "\nanyone with this URL can publish; Ctrl-C ends it\n");
  server.run(interrupted);
  return kOk;
}

}  // namespace tandem::app
