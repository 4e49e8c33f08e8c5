#include "http_fetch_trust.hpp"

#include <cstdlib>
#include <sys/stat.h>

#include <boost/asio/ip/address.hpp>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace tandem::net {

namespace ssl = boost::asio::ssl;

namespace {

std::string stamp_of(const char* path) {
  struct stat s{};
  if (path == nullptr || ::stat(path, &s) != 0) return "-";
  return std::to_string(s.st_ino) + '.' + std::to_string(s.st_size) + '.' + std::to_string(s.st_mtim.tv_sec) + '.' +
         std::to_string(s.st_mtim.tv_nsec);
}

const char* or_default(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : otherwise;
}

std::string system_stamp() {
  return stamp_of(or_default("SSL_CERT_FILE", ::X509_get_default_cert_file())) + '/' +
         stamp_of(or_default("SSL_CERT_DIR", ::X509_get_default_cert_dir()));
}

}  // namespace

std::shared_ptr<ssl::context> HttpFetcher::Trust::context_for(const std::string& ca_file, std::string& error) {
  const std::string stamp = ca_file.empty() ? system_stamp() : stamp_of(ca_file.c_str());
  Entry& entry = entries_[ca_file];
  if (entry.context != nullptr && entry.stamp == stamp) return entry.context;
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  ::SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  ::SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_compression);
  boost::system::error_code ec;
  context->set_verify_mode(ssl::verify_peer, ec);
  if (ca_file.empty())
    context->set_default_verify_paths(ec);
  else
    context->load_verify_file(ca_file, ec);
  if (ec) {
    error = (ca_file.empty() ? "the system's CA certificates" : "the CA file " + ca_file) +
            " cannot be read: " + ec.message();
    return nullptr;
  }
  entry = {stamp, context};
  return context;
}

void expect_host(SSL* session, const std::string& host) {
  X509_VERIFY_PARAM* param = ::SSL_get0_param(session);
  ::X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  boost::system::error_code not_an_address;
  static_cast<void>(boost::asio::ip::make_address(host, not_an_address));
  if (!not_an_address) {
    ::X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str());
    return;
  }
  ::X509_VERIFY_PARAM_set1_host(param, host.c_str(), host.size());
  // The macro SSL_set_tlsext_host_name casts in the old style.
  ::SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str()));
}

std::string handshake_fault(SSL* session, const boost::system::error_code& ec) {
  const long verdict = ::SSL_get_verify_result(session);
  if (verdict != X509_V_OK)
    return std::string("the certificate is refused: ") + ::X509_verify_cert_error_string(verdict);
  return "the TLS handshake failed: " + ec.message();
}

}  // namespace tandem::net
