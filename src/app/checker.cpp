#include "tandem/app/checker.hpp"

#include "tandem/config/units.hpp"
#include "tandem/core/authority.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace tandem::app {
namespace {

constexpr auto kExpiresSoon = std::chrono::days(14);
constexpr std::uint64_t kOtherDescriptors = 64;  // listeners, the store, the admin listener, name look-ups, the reserve

std::string day(WallTime t) {
  const std::time_t at = t.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&at, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

std::string list(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out.empty() ? "no name at all" : out;
}

std::string names_text(const net::Certificate& certificate) {
  std::vector<std::string> names = certificate.names();
  if (names.size() > 6) {
    names.resize(6);
    names.emplace_back("...");
  }
  return list(names);
}

std::optional<std::string> pem_fault(const std::string& key, const std::optional<std::string>& path) {
  if (!path) return std::nullopt;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path->c_str(), "r"), &std::fclose);
  if (!file) return key + ": " + *path + " cannot be read; name a PEM file, or null";
  const std::unique_ptr<X509, void (*)(X509*)> first(PEM_read_X509(file.get(), nullptr, nullptr, nullptr), &X509_free);
  ERR_clear_error();
  if (!first) return key + ": " + *path + " holds no PEM certificate";
  return std::nullopt;
}

}  // namespace

std::string load_fault(const net::Certificate::Fault& fault) {
  return (fault.of_key ? "tls.private_key: " : "tls.certificate: ") + fault.message;
}

std::optional<std::string> name_fault(const config::Config& config, const net::Certificate& certificate) {
  if (!config.tls || config.tls->allow_name_mismatch || certificate.covers(config.authority())) return std::nullopt;
  return "tls.certificate: " + config.tls->certificate + " is for " + names_text(certificate) + ", not for hostname " +
         config.authority().host() + "; get one for that name, or correct hostname";
}

std::vector<std::string> certificate_warnings(const config::Config& config, const net::Certificate& certificate,
                                              WallTime now) {
  std::vector<std::string> out;
  if (!config.tls) return out;
  const std::string which = "tls.certificate: " + config.tls->certificate;
  if (certificate.not_after() <= now) {
    out.push_back(which + " expired on " + day(certificate.not_after()) + "; every client refuses it: renew it");
  } else if (certificate.not_after() - now < kExpiresSoon) {
    out.push_back(which + " expires in " + config::describe_duration(certificate.not_after() - now) + ", on " +
                  day(certificate.not_after()) + "; renew it");
  }
  if (certificate.not_before() > now) {
    out.push_back(which + " is valid only from " + day(certificate.not_before()) + "; check the clock");
  }
  if (!certificate.covers(config.authority())) {
    out.push_back(which + " is for " + names_text(certificate) + ", not for hostname " + config.authority().host() +
                  "; clients will refuse it (tls.allow_name_mismatch is on)");
  }
  return out;
}

std::vector<std::string> config_warnings(const config::Config& c, const CheckFacts& facts) {
  std::vector<std::string> out;
  const std::uint64_t needed = c.limits.sockets.value_or(0) + kOtherDescriptors;
  if (facts.descriptor_limit < needed) {
    out.push_back("limits.sockets: " + std::to_string(c.limits.sockets.value_or(0)) +
                  " sockets need a file descriptor limit of " + std::to_string(needed) + ", this process may have " +
                  std::to_string(facts.descriptor_limit) + "; raise LimitNOFILE (ulimit -n), or lower limits.sockets");
  }
  if (c.attest.required && !c.attest.app_id) {
    out.emplace_back(
        "attest.app_id: null, so every attestation is rejected and no phone can pair for the first time; name the app, "
        "or set attest.required to false");
  }
  if (!c.attest.required) {
    out.emplace_back("attest.required: false, so whoever knows a room's name may pair in it");
  }
  if (c.proxy.trust != config::ProxyTrust::none && c.proxy.from.empty()) {
    out.emplace_back("proxy.from: empty, so no proxy's word counts; name the proxies' addresses");
  }
  if (!c.tls && c.proxy.trust == config::ProxyTrust::none) {
    out.emplace_back(
        "proxy.trust: none behind a proxy, so all clients together have the limits of one; set it to what the proxy "
        "sends");
  }
  if (c.timeouts.rendezvous >= c.timeouts.admission) {
    out.emplace_back("timeouts.rendezvous: not below timeouts.admission, which ends the wait first");
  }
  if (c.shard_map && c.shard_map->fetch_timeout * c.shard_map->fetch_attempts > c.shard_map->poll_interval) {
    out.emplace_back(
        "shard_map.fetch_timeout: all attempts together may outlast poll_interval; the next poll then comes late");
  }
  if (!c.state_path) {
    out.emplace_back("state.path: null, so every restart costs each pairing a silent re-registration");
  }
  return out;
}

std::optional<std::string> ca_fault(const config::Config& c) {
  if (auto fault = pem_fault("attest.root_ca", c.attest.root_ca)) return fault;
  return c.shard_map ? pem_fault("shard_map.ca_file", c.shard_map->ca_file) : std::nullopt;
}

std::string owns_nothing_warning(const config::Config& config, const shard::ShardMap& map) {
  const auto& hosts = map.hosts();
  if (std::find(hosts.begin(), hosts.end(), config.hostname) != hosts.end()) return {};
  std::string out = "hostname: the map of version " + std::to_string(map.version().value) + " names no " +
                    config.hostname + ", so this relay owns nothing";
  if (const std::string near = nearest(config.hostname, hosts); !near.empty())
    out += "; the nearest name in it is " + near;
  return out;
}

}  // namespace tandem::app
