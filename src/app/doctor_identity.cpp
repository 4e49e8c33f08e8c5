// The three things that one hostname must be (2-sharding 2.6): a name in the certificate, a name that resolves, a host
// of the map.
#include "tandem/app/checker.hpp"
#include "tandem/app/doctor.hpp"
#include "tandem/app/published_map.hpp"
#include "tandem/config/units.hpp"
#include "tandem/net/certificate.hpp"
#include "tandem/net/openssl_handle.hpp"
#include "tandem/shard/map.hpp"

#include <algorithm>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

namespace tandem::app {
namespace {

using net::BioPtr;
using net::X509Ptr;
using StorePtr = std::unique_ptr<X509_STORE, net::Freer<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, net::Freer<X509_STORE_CTX_free>>;

void free_chain(STACK_OF(X509) * chain) { sk_X509_pop_free(chain, X509_free); }

// Why this machine's CAs do not vouch for the chain; empty where they do. Dates are judged elsewhere.
std::string trust_fault(const std::string& chain_pem) {
  const BioPtr in(BIO_new_mem_buf(chain_pem.data(), static_cast<int>(chain_pem.size())));
  const X509Ptr leaf(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  const std::unique_ptr<STACK_OF(X509), decltype(&free_chain)> chain(sk_X509_new_null(), &free_chain);
  while (X509* next = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) sk_X509_push(chain.get(), next);
  const StorePtr store(X509_STORE_new());
  const StoreContextPtr context(X509_STORE_CTX_new());
  X509_STORE_set_default_paths(store.get());
  X509_STORE_set_flags(store.get(), X509_V_FLAG_NO_CHECK_TIME);
  std::string out;
  if (X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), chain.get()) != 1)
    out = "cannot be verified";
  else if (X509_verify_cert(context.get()) != 1)
    out = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
  ERR_clear_error();
  return out;
}

config::IpAddress address_of(const sockaddr* sa) {
  config::IpAddress out;
  if (sa->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, sa, sizeof in);
    std::memcpy(out.bytes.data(), &in.sin_addr, 4);
  } else {
    sockaddr_in6 in{};
    std::memcpy(&in, sa, sizeof in);
    out.v6 = true;
    std::memcpy(out.bytes.data(), &in.sin6_addr, 16);
  }
  return out;
}

std::vector<config::IpAddress> local_addresses() {
  std::vector<config::IpAddress> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr != nullptr && (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6))
      out.push_back(address_of(at->ifa_addr));
  }
  ::freeifaddrs(all);
  return out;
}

}  // namespace

Findings examine_certificate(const config::Config& c, WallTime now) {
  if (!c.tls)
    return {{Health::good, "certificate", "TLS is off: the proxy on this box presents one for " + c.authority().host(),
             ""}};
  const auto loaded = net::Certificate::load(c.tls->certificate, c.tls->private_key);
  if (const auto* fault = std::get_if<net::Certificate::Fault>(&loaded)) {
    return {{Health::wrong, "certificate", fault->message,
             "point tls.certificate and tls.private_key at a PEM chain and its key, readable by the service (group "
             "tandem-tls)"}};
  }
  const auto& certificate = std::get<net::Certificate>(loaded);
  Findings out;
  if (!certificate.covers(c.authority())) {
    const auto fault = name_fault(c, certificate);
    out.push_back({Health::wrong, "certificate",
                   fault.value_or(c.tls->certificate + " does not hold " + c.authority().host()),
                   "get a certificate for " + c.authority().host()});
  }
  if (certificate.not_after() <= now || certificate.not_before() > now) {
    const bool over = certificate.not_after() <= now;
    out.push_back({Health::wrong, "certificate", c.tls->certificate + (over ? " has expired" : " is not valid yet"),
                   over ? "renew it; the relay takes the new file within 5 s" : "check the clock of this machine"});
  } else {
    for (const std::string& warning : certificate_warnings(c, certificate, now)) {
      if (certificate.covers(c.authority()))
        out.push_back({Health::warning, "certificate", warning, "renew it; the relay takes the new file within 5 s"});
    }
  }
  if (const std::string why = trust_fault(certificate.chain_pem()); !why.empty()) {
    out.push_back({Health::wrong, "certificate", c.tls->certificate + " is not trusted here: " + why,
                   "use the full chain (fullchain.pem), or for a CA of your own set SSL_CERT_FILE"});
  }
  if (out.empty()) {
    out.push_back({Health::good, "certificate",
                   "holds " + c.authority().host() + ", trusted, valid for " +
                       config::describe_duration(certificate.not_after() - now),
                   ""});
  }
  return out;
}

Findings examine_name(const config::Config& c) {
  const Authority name = c.authority();
  if (name.kind() != Authority::Kind::name)
    return {{Health::good, "dns", name.host() + " is an address: nothing to resolve", ""}};
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = ::getaddrinfo(name.host().c_str(), nullptr, &hints, &found); error != 0) {
    if (is_localhost(name.host())) return {{Health::good, "dns", name.host() + " is this machine by definition", ""}};
    return {{Health::wrong, "dns", name.host() + " does not resolve to an address: " + ::gai_strerror(error),
             "publish an A or AAAA record for it, or correct hostname"}};
  }
  std::vector<config::IpAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) addresses.push_back(address_of(at->ai_addr));
  ::freeaddrinfo(found);
  const auto local = local_addresses();
  const bool here = std::any_of(addresses.begin(), addresses.end(), [&](const config::IpAddress& a) {
    return a.is_loopback() || std::find(local.begin(), local.end(), a) != local.end();
  });
  std::string text = name.host() + " is " + addresses.front().text();
  if (addresses.size() > 1) text += " and " + std::to_string(addresses.size() - 1) + " more";
  if (here) return {{Health::good, "dns", text + ", an address of this machine", ""}};
  return {{Health::warning, "dns", text + ", no address of this machine",
           "nothing, where a proxy or NAT forwards to it; else correct the record"}};
}

Findings examine_map(const config::Config& c, std::optional<WallTime>& server_time) {
  if (!c.shard_map) return {{Health::good, "map", "direct mode: this relay owns every room", ""}};
  const auto got = fetch_published(*c.shard_map);
  if (const auto* fault = std::get_if<UnpublishedMap>(&got)) {
    if (fault->unreadable)
      return {{Health::wrong, "map", c.shard_map->url + " holds no valid map: " + fault->why,
               "publish maps with tandemctl map alone"}};
    return {{Health::wrong, "map", c.shard_map->url + " cannot be fetched: " + fault->why,
             "make the map's server answer this machine; a running relay keeps its last map, a starting one needs "
             "this"}};
  }
  server_time = std::get<PublishedMap>(got).server_time;
  const shard::ShardMap& map = std::get<PublishedMap>(got).map;
  if (const std::string nothing = owns_nothing_warning(c, map); !nothing.empty()) {
    return {{Health::wrong, "map", nothing,
             "make hostname and the map's host the same, byte for byte; or give it buckets: tandemctl map add " +
                 c.hostname}};
  }
  return {{Health::good, "map",
           "version " + std::to_string(map.version().value) + " gives " + c.hostname + " " +
               std::to_string(buckets_of(map, c.hostname)) + " of 65536 buckets",
           ""}};
}

}  // namespace tandem::app
