// What every TLS handshake shares: certificate, versions, ciphers, ticket keys (1-wire 1.2; 5-performance 5.3.6).
//
// Replaceable at run time: connections keep the context they began with, new ones take the newest. The ticket keys
// outlive a replacement, so that a renewed certificate does not cost every client a full handshake.
#pragma once

#include "tandem/net/certificate.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

struct ssl_ctx_st;
struct ssl_st;

namespace tandem::net {

// Session ticket keys: two live ones, the older only decrypts. Rotated every 12 h by use, shared with nobody, never
// stored.
class TicketKeys;
[[nodiscard]] std::shared_ptr<TicketKeys> make_ticket_keys();

class TlsContext {
 public:
  enum class MinVersion : std::uint8_t { tls12, tls13 };

  // Fault: OpenSSL refuses the certificate or its key (too small, unknown algorithm).
  [[nodiscard]] static std::variant<std::shared_ptr<const TlsContext>, Certificate::Fault> make(
      const Certificate& certificate, MinVersion min_version, std::shared_ptr<TicketKeys> tickets);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] ssl_st* new_session()
      const;  // a server-side SSL without a BIO; the caller frees it; null when memory is short

 private:
  TlsContext() = default;
  ssl_ctx_st* context_ = nullptr;
  std::shared_ptr<TicketKeys> tickets_;
};

}  // namespace tandem::net
