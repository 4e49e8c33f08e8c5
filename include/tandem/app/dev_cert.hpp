// A self-signed certificate for development: ECDSA P-256, for localhost, loopback and names of one's own, at most 825
// days. Not a CA, so that a machine that trusts it trusts it for these names alone.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace tandem::app {

struct DevCertificate {
  std::string certificate_pem;
  std::string private_key_pem;  // PKCS#8
};

inline constexpr int kDevCertificateDays = 820;

// localhost, 127.0.0.1 and ::1, then `extra_names` (DNS names or IP addresses, no brackets). The text is what was
// wrong.
[[nodiscard]] std::variant<DevCertificate, std::string> make_dev_certificate(
    const std::vector<std::string>& extra_names, int days = kDevCertificateDays);

// Writes fullchain.pem (0644) and privkey.pem (0600) into `directory`, which is made where missing. Where either exists
// nothing is written. Empty on success, else what was wrong.
[[nodiscard]] std::string write_dev_certificate(const DevCertificate& made, const std::string& directory);

}  // namespace tandem::app
