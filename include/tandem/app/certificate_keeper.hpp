// The certificate in force: loaded at start, replaced while running when its files change or a reload names others,
// kept where the new one is no good (2-sharding 2.6; 3-operations, Reload). Every refusal is one line. What a good
// certificate is, and what of it deserves a warning, is app/checker's to say.
#pragma once

#include "tandem/app/certificate_files.hpp"
#include "tandem/config/config.hpp"
#include "tandem/log/log.hpp"
#include "tandem/net/certificate.hpp"
#include "tandem/net/tls_context.hpp"

#include <memory>
#include <optional>
#include <string>

namespace tandem::app {

class CertificateKeeper {
 public:
  explicit CertificateKeeper(log::Log& log);

  // Loads and checks what `config.tls` names and makes it the one in force. The line that says why not; then nothing
  // has changed.
  [[nodiscard]] std::optional<std::string> load(const config::Config& config, WallTime now);

  // Once a second: true where changed files brought another certificate, now in force. A pair that does not match, or
  // lacks the name, is waited for: it is told once, and tried again at each change of the files. Warns of expiry once a
  // day.
  [[nodiscard]] bool refresh(const config::Config& config, WallTime now);

  [[nodiscard]] const std::shared_ptr<const net::TlsContext>& context() const noexcept { return context_; }
  [[nodiscard]] std::optional<WallTime> expiry() const noexcept;

 private:
  void warn(const config::Config& config, WallTime now);

  log::Log& log_;
  std::shared_ptr<net::TicketKeys> tickets_;
  std::optional<CertificateFiles> files_;
  std::shared_ptr<const net::TlsContext> context_;
  std::optional<net::Certificate> certificate_;
  std::string told_;    // the last refusal that was told
  int tries_left_ = 0;  // further looks after a change: a file may be written in pieces
  WallTime next_warning_{};
};

}  // namespace tandem::app
