#include "tandem/app/certificate_keeper.hpp"

#include "tandem/net/certificate.hpp"

#include <utility>
#include <variant>

namespace tandem::app {
namespace {

constexpr std::chrono::hours kWarnBefore{14 * 24};
constexpr std::chrono::hours kWarnEvery{24};
constexpr int kLooksAfterChange = 5;

std::string names_of(const net::Certificate& certificate) {
  std::string out;
  for (const std::string& name : certificate.names()) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "no name" : out;
}

}  // namespace

CertificateKeeper::CertificateKeeper(Authority hostname, log::Log& log)
    : hostname_(std::move(hostname)), log_(log), tickets_(net::make_ticket_keys()) {}

std::optional<std::string> CertificateKeeper::load(const config::Tls& tls, WallTime now) {
  // The files are marked before they are read: a change while we read is seen as a change.
  CertificateFiles files(tls.certificate, tls.private_key);
  auto loaded = net::Certificate::load(tls.certificate, tls.private_key);
  if (const auto* fault = std::get_if<net::Certificate::Fault>(&loaded)) return fault->message;
  const auto& certificate = std::get<net::Certificate>(loaded);
  if (!tls.allow_name_mismatch && !certificate.covers(hostname_)) {
    return tls.certificate + ": the certificate does not name " + hostname_.host() + " (it names " +
           names_of(certificate) + "); get one for the hostname, or correct hostname";
  }
  const auto version = tls.min_version == config::TlsVersion::tls_1_3 ? net::TlsContext::MinVersion::tls13
                                                                      : net::TlsContext::MinVersion::tls12;
  auto made = net::TlsContext::make(certificate, version, tickets_);
  if (const auto* fault = std::get_if<net::Certificate::Fault>(&made)) return fault->message;

  tls_ = tls;
  files_ = std::move(files);
  context_ = std::get<std::shared_ptr<const net::TlsContext>>(made);
  expiry_ = certificate.not_after();
  chain_ = certificate.chain_pem();
  told_.clear();
  tries_left_ = 0;
  next_warning_ = {};
  warn_of_expiry(now);
  return std::nullopt;
}

bool CertificateKeeper::refresh(WallTime now) {
  if (!files_) return false;
  warn_of_expiry(now);
  if (files_->changed()) tries_left_ = kLooksAfterChange;
  if (tries_left_ == 0) return false;
  --tries_left_;
  const std::string before = chain_;
  const config::Tls tls = tls_;
  const int tries_left = tries_left_;
  if (const auto fault = load(tls, now)) {
    tries_left_ = tries_left;
    if (*fault != told_)
      log_.warn("new certificate not taken, the old one stays", {{"hostname", hostname_.text()}, {"why", *fault}});
    told_ = *fault;
    return false;
  }
  if (chain_ == before) return false;
  log_.info("certificate taken", {{"expires", (*expiry_).time_since_epoch().count()}});
  return true;
}

void CertificateKeeper::warn_of_expiry(WallTime now) {
  if (!expiry_ || *expiry_ - now > kWarnBefore || now < next_warning_) return;
  next_warning_ = now + kWarnEvery;
  if (*expiry_ <= now) {
    log_.error("the certificate has expired: clients refuse it; renew it and its files are taken at once",
               {{"certificate", tls_.certificate}});
  } else {
    log_.warn("the certificate expires soon",
              {{"certificate", tls_.certificate},
               {"hours_left", std::chrono::duration_cast<std::chrono::hours>(*expiry_ - now).count()}});
  }
}

}  // namespace tandem::app
