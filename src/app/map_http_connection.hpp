// One connection of the small server: reads requests, writes answers, until either side has had enough.
#pragma once

#include "tandem/app/map_http.hpp"
#include "tandem/net/certificate.hpp"
#include "tandem/net/tls_context.hpp"

#include <chrono>
#include <functional>
#include <memory>

#include <openssl/ssl.h>

namespace tandem::app {

class HttpConnection {
 public:
  HttpConnection(int fd, const net::TlsContext* tls);  // the descriptor stays the caller's
  // `may_wait`: whether a connection may be kept for a further request, asked before each answer.
  void run(const HttpHandler& handler, const std::function<bool()>& may_wait);

 private:
  struct FreeSession {
    void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
  };
  enum class Next { keep, close };

  [[nodiscard]] bool shake_hands();
  [[nodiscard]] Next one_request(const HttpHandler& handler, const std::function<bool()>& may_wait);
  [[nodiscard]] bool read_more();  // into buffer_; false: end, error or too late
  [[nodiscard]] bool write_all(std::string_view bytes);
  [[nodiscard]] bool send(const HttpReply& reply, bool head_only, bool keep);
  void set_timeouts();

  int fd_;
  std::unique_ptr<SSL, FreeSession> ssl_;
  bool wants_tls_;
  std::string buffer_;
  std::chrono::steady_clock::time_point deadline_;  // of the request being read
};

}  // namespace tandem::app
