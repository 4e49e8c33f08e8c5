// A certificate chain with its key, loaded and checked: for the listener, `--check`, the doctor and a reload.
#pragma once

#include "tandem/core/authority.hpp"
#include "tandem/core/time.hpp"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tandem::net {

class Certificate {
 public:
  // What is wrong, in one line for people, naming the file. Says `match` where key and certificate do not.
  struct Fault {
    std::string message;
    bool of_key = false;  // the private key's file is to blame, not the certificate's
  };

  // PEM files: the leaf first, then its intermediates. An expired certificate loads: the caller warns.
  [[nodiscard]] static std::variant<Certificate, Fault> load(const std::string& chain_path,
                                                             const std::string& key_path);
  // The same from memory; the names only serve the messages.
  [[nodiscard]] static std::variant<Certificate, Fault> parse(const std::string& chain_pem, const std::string& key_pem,
                                                              const std::string& chain_name = "certificate",
                                                              const std::string& key_name = "private key");

  // Whether a client that asks for this host is satisfied (2-sharding 2.6): dNSName (wildcards as RFC 6125), or
  // iPAddress for a literal. The port does not count; neither does the subject's common name, which clients ignore.
  [[nodiscard]] bool covers(const Authority& host) const;
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }  // SANs as text
  [[nodiscard]] WallTime not_before() const noexcept { return not_before_; }
  [[nodiscard]] WallTime not_after() const noexcept { return not_after_; }
  [[nodiscard]] const std::string& chain_pem() const noexcept { return chain_pem_; }

  struct Parts;  // OpenSSL's objects
  [[nodiscard]] const Parts& parts() const noexcept { return *parts_; }

 private:
  Certificate() = default;
  std::shared_ptr<const Parts> parts_;
  std::vector<std::string> names_;
  WallTime not_before_{}, not_after_{};
  std::string chain_pem_;
};

}  // namespace tandem::net
