// What certificate a client is shown, held against the one in the file: a renewal that the relay could not take leaves
// the old one in force, and nobody notices until it expires.
#include "app/descriptor.hpp"
#include "tandem/app/admin_read.hpp"
#include "tandem/app/checker.hpp"
#include "tandem/app/doctor.hpp"
#include "tandem/net/openssl_handle.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

namespace tandem::app {
namespace {

constexpr timeval kServedWait{3, 0};  // for each step

using ContextPtr = std::unique_ptr<SSL_CTX, net::Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, net::Freer<SSL_free>>;

config::ListenAddress reachable(config::ListenAddress address) {
  if (!address.ip.is_any()) return address;
  const auto loopback = config::IpAddress::parse(address.ip.v6 ? "::1" : "127.0.0.1");
  return {loopback.value(), address.port};
}

int connect_to(const config::ListenAddress& address) {
  sockaddr_storage to{};
  socklen_t size = 0;
  if (address.ip.v6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    std::memcpy(&in.sin6_addr, address.ip.bytes.data(), 16);
    std::memcpy(&to, &in, size = sizeof in);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.ip.bytes.data(), 4);
    std::memcpy(&to, &in, size = sizeof in);
  }
  const int fd = ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kServedWait, sizeof kServedWait);  // of connect() as well
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kServedWait, sizeof kServedWait);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), size) == 0) return fd;
  const int why = errno;
  ::close(fd);
  errno = why;
  return -1;
}

// Whether the relay awaits a PROXY header of who comes from this address of ours.
bool is_listed_proxy(const config::Config& c, const config::IpAddress& from) {
  if (c.proxy.trust != config::ProxyTrust::proxy_protocol) return false;
  for (const config::Cidr& network : c.proxy.from) {
    if (network.contains(from)) return true;
  }
  return false;
}

// The leaf that a handshake shows, or null and why.
net::X509Ptr presented(const config::Config& c, const config::ListenAddress& address, std::string& why) {
  const Descriptor socket(connect_to(address));
  if (socket.get() < 0) {
    why = std::strerror(errno);
    return nullptr;
  }
  static constexpr char kUnknown[] = "PROXY UNKNOWN\r\n";
  if (is_listed_proxy(c, address.ip)) std::ignore = ::send(socket.get(), kUnknown, sizeof kUnknown - 1, MSG_NOSIGNAL);
  const ContextPtr context(SSL_CTX_new(TLS_client_method()));  // believes anything: the file's own is judged elsewhere
  const SslPtr ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), socket.get());
  const Authority name = c.authority();
  std::string sni = name.host();
  if (name.kind() == Authority::Kind::name)  // SSL_set_tlsext_host_name, a macro with a cast of the old kind
    SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, sni.data());
  if (SSL_connect(ssl.get()) != 1) {
    why = "no TLS handshake";
    ERR_clear_error();
    return nullptr;
  }
  return net::X509Ptr(SSL_get1_peer_certificate(ssl.get()));
}

std::string last_day(X509* certificate) {
  std::tm parts{};
  char text[16];
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) != 1) return "no valid date";
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

}  // namespace

Findings examine_served(const config::Config& c) {
  const auto loaded = c.tls ? net::Certificate::load(c.tls->certificate, c.tls->private_key)
                            : std::variant<net::Certificate, net::Certificate::Fault>(net::Certificate::Fault{});
  const auto* certificate = std::get_if<net::Certificate>(&loaded);
  const auto ready = admin_get(c.admin_listen.text(), "/readyz");
  const auto* answer = std::get_if<AdminAnswer>(&ready);
  // Without TLS, a sound file, or a relay that listens there is nothing to compare; all three are examined elsewhere.
  if (certificate == nullptr || answer == nullptr || answer->status != 200) return {};

  const config::ListenAddress address = reachable(c.listen.front());
  std::string why;
  const net::X509Ptr shown = presented(c, address, why);
  if (!shown) {
    return {
        {Health::warning, "served", address.text() + " shows no certificate: " + why,
         "nothing, where systemd passes other sockets than `listen` names; else see the log: journalctl -u tandemd"}};
  }
  const net::BioPtr pem(
      BIO_new_mem_buf(certificate->chain_pem().data(), static_cast<int>(certificate->chain_pem().size())));
  const net::X509Ptr leaf(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
  if (leaf && X509_cmp(leaf.get(), shown.get()) == 0)
    return {{Health::good, "served", "clients are shown the certificate of the file", ""}};
  return {{Health::wrong, "served",
           "clients are shown another certificate than " + c.tls->certificate + " holds: the one shown ends on " +
               last_day(shown.get()) + ", the file's on " + (leaf ? last_day(leaf.get()) : "no valid date"),
           "a new file is taken within 5 s; journalctl -u tandemd | grep 'not taken' says why this one is not (the "
           "service must be able to read both files: group tandem-tls)"}};
}

}  // namespace tandem::app
