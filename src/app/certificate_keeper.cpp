#include "tandem/app/certificate_keeper.hpp"

#include "tandem/app/checker.hpp"

#include <utility>
#include <variant>

namespace tandem::app {
namespace {

constexpr std::chrono::hours kWarnEvery{24};
constexpr int kLooksAfterChange = 5;

}  // namespace

CertificateKeeper::CertificateKeeper(log::Log& log) : log_(log), tickets_(net::make_ticket_keys()) {}

std::optional<std::string> CertificateKeeper::load(const config::Config& config, WallTime now) {
  const config::Tls& tls = *config.tls;
  // The files are marked before they are read: a change while we read is seen as a change.
  CertificateFiles files(tls.certificate, tls.private_key);
  auto loaded = net::Certificate::load(tls.certificate, tls.private_key);
  if (const auto* fault = std::get_if<net::Certificate::Fault>(&loaded)) return load_fault(*fault);
  auto& certificate = std::get<net::Certificate>(loaded);
  if (auto fault = name_fault(config, certificate)) return fault;
  const auto version = tls.min_version == config::TlsVersion::tls_1_3 ? net::TlsContext::MinVersion::tls13
                                                                      : net::TlsContext::MinVersion::tls12;
  auto made = net::TlsContext::make(certificate, version, tickets_);
  if (const auto* fault = std::get_if<net::Certificate::Fault>(&made)) return load_fault(*fault);

  files_ = std::move(files);
  context_ = std::get<std::shared_ptr<const net::TlsContext>>(made);
  certificate_ = std::move(certificate);
  told_.clear();
  tries_left_ = 0;
  next_warning_ = {};
  warn(config, now);
  return std::nullopt;
}

bool CertificateKeeper::refresh(const config::Config& config, WallTime now) {
  if (!files_) return false;
  warn(config, now);
  if (files_->changed()) {
    tries_left_ = kLooksAfterChange;
    told_.clear();  // each change gets its answer, also one like the last
  }
  if (tries_left_ == 0) return false;
  --tries_left_;
  const std::string before = certificate_->chain_pem();
  if (const auto fault = load(config, now)) {
    if (*fault != told_)
      log_.warn("new certificate not taken, the old one stays", {{"hostname", config.hostname}, {"why", *fault}});
    told_ = *fault;
    return false;
  }
  if (certificate_->chain_pem() == before) return false;
  log_.info("certificate taken", {{"expires_at", certificate_->not_after().time_since_epoch().count()}});
  return true;
}

std::optional<WallTime> CertificateKeeper::expiry() const noexcept {
  return certificate_ ? std::optional(certificate_->not_after()) : std::nullopt;
}

void CertificateKeeper::warn(const config::Config& config, WallTime now) {
  if (now < next_warning_) return;
  next_warning_ = now + kWarnEvery;
  for (const std::string& warning : certificate_warnings(config, *certificate_, now)) log_.warn(warning);
}

}  // namespace tandem::app
