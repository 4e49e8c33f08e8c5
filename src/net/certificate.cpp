#include "tandem/net/certificate.hpp"

#include "net/certificate_parts.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <openssl/err.h>
#include <openssl/pem.h>

namespace tandem::net {
namespace {

constexpr std::size_t kMaxFileBytes = 1024 * 1024;

// Empty on success, else what went wrong.
std::string read_file(const std::string& path, std::string& out) {
  std::unique_ptr<std::FILE, Freer<&std::fclose>> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return "cannot read " + path + ": " + std::strerror(errno);
  char block[8192];
  while (const std::size_t n = std::fread(block, 1, sizeof block, file.get())) {
    out.append(block, n);
    if (out.size() > kMaxFileBytes) return path + " is too large for a PEM file (over 1 MiB)";
  }
  if (std::ferror(file.get()) != 0) return "cannot read " + path + ": " + std::strerror(errno);
  return {};
}

WallTime wall_time(const ASN1_TIME* t) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(t, &parts) != 1) return {};
  return WallTime{seconds{timegm(&parts)}};
}

std::vector<std::string> subject_alternative_names(X509* leaf) {
  std::vector<std::string> out;
  std::unique_ptr<GENERAL_NAMES, Freer<&GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(leaf, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      const auto* text = ASN1_STRING_get0_data(name->d.dNSName);
      out.emplace_back(reinterpret_cast<const char*>(text),
                       static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      char text[INET6_ADDRSTRLEN] = {};
      const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
      if (inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof text) != nullptr)
        out.emplace_back(text);
    }
  }
  return out;
}

// No terminal prompt for an encrypted key: it is refused like any other unreadable one.
int no_password(char*, int, int, void*) { return -1; }

}  // namespace

std::variant<Certificate, Certificate::Fault> Certificate::load(const std::string& chain_path,
                                                                const std::string& key_path) {
  std::string chain, key;
  if (std::string fault = read_file(chain_path, chain); !fault.empty()) return Fault{std::move(fault)};
  if (std::string fault = read_file(key_path, key); !fault.empty()) return Fault{std::move(fault), true};
  return parse(chain, key, chain_path, key_path);
}

std::variant<Certificate, Certificate::Fault> Certificate::parse(const std::string& chain_pem,
                                                                 const std::string& key_pem,
                                                                 const std::string& chain_name,
                                                                 const std::string& key_name) {
  auto parts = std::make_shared<Parts>();
  const BioPtr chain(BIO_new_mem_buf(chain_pem.data(), static_cast<int>(chain_pem.size())));
  parts->leaf.reset(PEM_read_bio_X509_AUX(chain.get(), nullptr, &no_password, nullptr));
  if (!parts->leaf) {
    ERR_clear_error();
    return Fault{chain_name + " holds no PEM certificate"};
  }
  while (X509* next = PEM_read_bio_X509(chain.get(), nullptr, &no_password, nullptr))
    parts->intermediates.emplace_back(next);
  const unsigned long last = ERR_peek_last_error();
  ERR_clear_error();
  if (last != 0 && ERR_GET_REASON(last) != PEM_R_NO_START_LINE)
    return Fault{chain_name + " holds a damaged certificate behind the first"};

  const BioPtr key(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  parts->key.reset(PEM_read_bio_PrivateKey(key.get(), nullptr, &no_password, nullptr));
  ERR_clear_error();
  if (!parts->key) return Fault{key_name + " holds no PEM private key, or an encrypted one", true};
  const int same = X509_check_private_key(parts->leaf.get(), parts->key.get());
  ERR_clear_error();
  if (same != 1) return Fault{key_name + " does not match the certificate in " + chain_name, true};

  Certificate out;
  out.names_ = subject_alternative_names(parts->leaf.get());
  out.not_before_ = wall_time(X509_get0_notBefore(parts->leaf.get()));
  out.not_after_ = wall_time(X509_get0_notAfter(parts->leaf.get()));
  out.chain_pem_ = chain_pem;
  out.parts_ = std::move(parts);
  return out;
}

bool Certificate::covers(const Authority& host) const {
  if (host.kind() != Authority::Kind::name) return X509_check_ip_asc(parts_->leaf.get(), host.host().c_str(), 0) == 1;
  constexpr unsigned flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
  return X509_check_host(parts_->leaf.get(), host.host().data(), host.host().size(), flags, nullptr) == 1;
}

}  // namespace tandem::net
