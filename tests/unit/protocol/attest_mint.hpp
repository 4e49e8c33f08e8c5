// A phone with an App Attest key of its own, and a certificate authority of throwaway keys
// (vectors/appattest_synthetic.json): mints attestations and assertions that are right but for what a test makes wrong.
#pragma once

#include "tandem/core/crypto.hpp"
#include "tandem/core/time.hpp"
#include "tandem/protocol/attest.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

namespace tandem::protocol::mint {

using Key = std::shared_ptr<EVP_PKEY>;

[[nodiscard]] nlohmann::json vectors(std::string_view file);
[[nodiscard]] Bytes unbase64(const nlohmann::json& text);
[[nodiscard]] Sha256 hash_of_hex(const nlohmann::json& text);

[[nodiscard]] Key load_key(const std::string& pem);
[[nodiscard]] Key new_key(const char* group = "P-256");
[[nodiscard]] P256Point point_of(const Key& key);

struct Certificate {
  std::string subject, issuer;
  Key key, signer;
  std::optional<bool> ca;
  std::string key_usage;                // OpenSSL's words, "critical,keyCertSign"; empty: none
  std::vector<Bytes> nonce_extensions;  // the values of 1.2.840.113635.100.8.2
  std::string digest = "SHA256";
  WallTime before{std::chrono::sys_days{std::chrono::year{2020} / 1 / 1}};
  WallTime after{std::chrono::sys_days{std::chrono::year{2045} / 1 / 1}};
  [[nodiscard]] Bytes der() const;
};

// CBOR heads and items by hand, for what no encoder would write.
[[nodiscard]] Bytes head(std::uint8_t major, std::uint64_t value);
[[nodiscard]] Bytes text(std::string_view value);
[[nodiscard]] Bytes bytes(ByteView value);
[[nodiscard]] Bytes join(std::initializer_list<Bytes> parts);

struct Authority {
  Key root_key, intermediate_key;
  Bytes root, intermediate;
  std::string app_id;
  [[nodiscard]] static Authority synthetic();
  [[nodiscard]] AttestPolicy policy() const;
};

// What to do differently from a genuine phone.
struct Twist {
  std::string format = "apple-appattest";
  std::optional<std::string> app_id;
  std::string aaguid{"appattest\0\0\0\0\0\0\0", 16};
  std::uint32_t counter = 0;
  std::optional<Bytes> credential, auth_data;
  std::optional<std::vector<Bytes>> chain;  // an empty entry stands for the leaf
  std::optional<std::vector<Bytes>> nonce_extensions;
  std::optional<Certificate> leaf;  // its nonce extension is still filled in
};

[[nodiscard]] Bytes nonce_der(const Sha256& nonce);
[[nodiscard]] Bytes auth_data(const Authority& authority, const Key& key, const Twist& twist = {});
[[nodiscard]] Certificate leaf(const Authority& authority, const Key& key);
[[nodiscard]] Bytes attestation(const Authority& authority, const Key& key, const Sha256& client_data_hash,
                                const Twist& twist = {});
[[nodiscard]] Bytes assertion(const Key& key, std::string_view app_id, std::uint32_t counter,
                              const Sha256& client_data_hash, bool one_hash_short = false);
[[nodiscard]] Bytes assertion_over(const Key& key, const Bytes& authenticator_data, const Sha256& client_data_hash,
                                   bool one_hash_short = false);

}  // namespace tandem::protocol::mint
