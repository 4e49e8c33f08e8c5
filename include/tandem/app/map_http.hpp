// A small blocking HTTP/1.1 server for `map serve` and `map console`: one thread a connection, a bounded number of
// them, bounded in size and time; plain on loopback, or TLS. Requests are read by the relay's own strict reader.
#pragma once

#include "tandem/config/address.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::app {

struct HttpRequest {
  std::string method, path, body;
  std::vector<std::pair<std::string, std::string>> headers;                  // names in lower case
  [[nodiscard]] std::string_view header(std::string_view lower_name) const;  // the only one of that name, else empty
};

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Called from several threads at once.
using HttpHandler = std::function<HttpReply(const HttpRequest&)>;

struct HttpPlace {
  config::IpAddress ip;
  std::uint16_t port = 0;                // 0: any that is free
  std::string certificate, private_key;  // both or neither
};
// "127.0.0.1:9470", "[::1]:0", "localhost:9470"; nothing where it is no such thing.
[[nodiscard]] std::optional<HttpPlace> parse_http_place(std::string_view listen);

class HttpServer {
 public:
  // Errors, as MapErrors: the address is taken, the certificate cannot be used.
  HttpServer(HttpPlace place, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::string origin() const;        // "https://127.0.0.1:9471"
  void run(const std::function<bool()>& stopped);  // until stopped() says so; asked several times a second

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::app
