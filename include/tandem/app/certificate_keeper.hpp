// The certificate in force: loaded at start, replaced while running when its files change or a reload names others,
// kept where the new one is no good (2-sharding 2.6; 3-operations, Reload). Every refusal is one line.
#pragma once

#include "tandem/app/certificate_files.hpp"
#include "tandem/config/config.hpp"
#include "tandem/core/authority.hpp"
#include "tandem/log/log.hpp"
#include "tandem/net/tls_context.hpp"

#include <memory>
#include <optional>
#include <string>

namespace tandem::app {

class CertificateKeeper {
 public:
  CertificateKeeper(Authority hostname, log::Log& log);

  // Loads and checks what `tls` names and makes it the one in force. The line that says why not; then nothing has
  // changed.
  [[nodiscard]] std::optional<std::string> load(const config::Tls& tls, WallTime now);

  // Once a second: true where changed files brought another certificate, now in force. A pair that does not match, or
  // lacks the name, is waited for: it is told once, and tried again at each change of the files.
  [[nodiscard]] bool refresh(WallTime now);

  [[nodiscard]] const std::shared_ptr<const net::TlsContext>& context() const noexcept { return context_; }
  [[nodiscard]] std::optional<WallTime> expiry() const noexcept { return expiry_; }

 private:
  void warn_of_expiry(WallTime now);

  Authority hostname_;
  log::Log& log_;
  std::shared_ptr<net::TicketKeys> tickets_;
  config::Tls tls_;
  std::optional<CertificateFiles> files_;
  std::shared_ptr<const net::TlsContext> context_;
  std::optional<WallTime> expiry_;
  std::string chain_, told_;  // the chain in force; the last refusal that was told
  int tries_left_ = 0;        // further looks after a change: a file may be written in pieces
  WallTime next_warning_{};
};

}  // namespace tandem::app
