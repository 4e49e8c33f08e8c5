#include "tandem/app/dev_cert.hpp"

#include "tandem/core/authority.hpp"
#include "tandem/net/openssl_handle.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace tandem::app {
namespace {

using ExtensionPtr = std::unique_ptr<X509_EXTENSION, net::Freer<X509_EXTENSION_free>>;

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

bool add_extension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// "DNS:localhost,IP:127.0.0.1,..."; `fault` names the first name that is neither.
std::string alternative_names(const std::vector<std::string>& names, std::string& fault) {
  std::string value;
  for (const std::string& name : names) {
    boost::system::error_code not_an_address;
    boost::asio::ip::make_address(name, not_an_address);
    const std::string plain = name.starts_with("*.") ? name.substr(2) : name;
    if (not_an_address) {
      const auto parsed = Authority::parse(plain);
      if (!parsed || parsed->port() || parsed->kind() != Authority::Kind::name) {
        fault = "'" + name + "' is neither a lowercase DNS name nor an IP address";
        return {};
      }
    }
    value += (value.empty() ? "" : ",") + std::string(not_an_address ? "DNS:" : "IP:") + name;
  }
  return value;
}

bool fill(X509* certificate, EVP_PKEY* key, const std::string& names, int days) {
  std::array<unsigned char, 16> serial{};
  if (RAND_bytes(serial.data(), static_cast<int>(serial.size())) != 1) return false;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive and never short
  const std::unique_ptr<BIGNUM, net::Freer<BN_free>> number(
      BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr));
  constexpr long one_hour = 3600, one_day = 24 * one_hour;
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* common_name = reinterpret_cast<const unsigned char*>("localhost");
  return number && X509_set_version(certificate, X509_VERSION_3) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -one_hour) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), days * one_day - one_hour) != nullptr &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, common_name, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
         add_extension(certificate, NID_ext_key_usage, "serverAuth") &&
         add_extension(certificate, NID_subject_key_identifier, "hash") &&
         add_extension(certificate, NID_subject_alt_name, names) && X509_sign(certificate, key, EVP_sha256()) != 0;
}

std::string what_errno_says() { return std::generic_category().message(errno); }

bool write_new(const std::string& path, const std::string& content, mode_t mode, std::string& fault) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) {
    fault =
        errno == EEXIST ? path + " exists; it is left as it is" : "cannot create " + path + ": " + what_errno_says();
    return false;
  }
  bool whole = ::fchmod(fd, mode) == 0;  // whatever the umask says
  for (std::size_t done = 0; whole && done < content.size();) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    whole = n > 0;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  if (!whole) fault = "cannot write " + path + ": " + what_errno_says();
  ::close(fd);
  if (!whole) ::unlink(path.c_str());
  return whole;
}

}  // namespace

std::variant<DevCertificate, std::string> make_dev_certificate(const std::vector<std::string>& extra_names, int days) {
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& name : extra_names)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  std::string fault;
  const std::string alternatives = alternative_names(names, fault);
  if (!fault.empty()) return fault;

  const net::KeyPtr key(EVP_EC_gen("P-256"));
  const net::X509Ptr certificate(X509_new());
  if (!key || !certificate || !fill(certificate.get(), key.get(), alternatives, days))
    return std::string("OpenSSL could not make the certificate");
  const net::BioPtr certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return std::string("OpenSSL could not write the certificate");
  return DevCertificate{text_of(certificate_text.get()), text_of(key_text.get())};
}

std::string write_dev_certificate(const DevCertificate& made, const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return "cannot make the folder " + directory + ": " + error.message();
  const std::string certificate_path = (fs::path(directory) / "fullchain.pem").string();
  const std::string key_path = (fs::path(directory) / "privkey.pem").string();
  std::string fault;
  if (fs::exists(fs::symlink_status(key_path, error))) return key_path + " exists; it is left as it is";
  if (!write_new(certificate_path, made.certificate_pem, 0644, fault)) return fault;
  if (!write_new(key_path, made.private_key_pem, 0600, fault)) ::unlink(certificate_path.c_str());
  return fault;
}

}  // namespace tandem::app
