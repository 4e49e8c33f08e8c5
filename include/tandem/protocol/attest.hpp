// Apple's App Attest: is this key one that the Secure Enclave of a genuine copy of our app holds (attestation), and did
// that key sign this request (assertion)? Source: 1-wire 1.6 and 1.7; Apple, "Validating apps that connect to your
// server".
//
// Pure: time comes in as an argument, nothing is read or logged, nothing throws on what a peer sends. Every refusal has
// its own reason here; the wire shows one text for all refused attestations, so reasons go to the debug log and the
// metric alone.
#pragma once

#include "tandem/core/base64.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/error.hpp"
#include "tandem/core/time.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/system/result.hpp>

namespace tandem::protocol {

enum class AttestEnvironment : std::uint8_t { production, development };

using P256Point = std::array<std::uint8_t, 65>;  // uncompressed: 0x04, x, y

// Why an attestation or an assertion was refused.
enum class AttestFault : std::uint8_t {
  not_configured,      // no app id: everything is rejected
  bad_base64,          // for callers that decode before they verify
  bad_cbor,            // not the strict subset, see cbor_reader.hpp
  missing_field,       // a field is absent or of another type
  wrong_format,        // fmt
  wrong_chain_length,  // x5c is not exactly two
  bad_certificate,     // not DER of a certificate, or bytes behind it
  not_a_ca,            // the intermediate may not sign certificates
  untrusted,           // a signature, a name, or the root is not the one that is trusted
  expired,             // or not valid yet: any of the three
  no_nonce,            // the leaf lacks the extension, has it twice, or malformed
  wrong_nonce,         // the leaf was not made for this challenge
  wrong_key_type,      // not an uncompressed P-256 point
  wrong_key_id,        // key, credential id and its length do not agree
  wrong_app,           // rpIdHash
  wrong_environment,   // AAGUID
  wrong_counter,       // an attestation's counter is not 0
  short_data,          // authData or authenticatorData ends early
  bad_signature,       // an assertion's
};
inline constexpr int kAttestFaultCount = static_cast<int>(AttestFault::bad_signature) + 1;

[[nodiscard]] std::string_view label(AttestFault f) noexcept;  // "wrong_nonce": log and metric
[[nodiscard]] std::string_view to_string(
    AttestFault f) noexcept;  // "wrong nonce": the <why> of `assertion rejected: <why>`

// What a good attestation proves.
struct Attested {
  Sha256 key_id{};  // SHA-256 of the point
  P256Point point{};
};

struct AttestPolicy {
  std::string app_id;  // TEAMID.bundle.id; empty: reject everything
  AttestEnvironment environment = AttestEnvironment::production;
  std::vector<Bytes> roots;  // DER; any one of them is trusted
};

// Apple's App Attestation Root CA: what is trusted where attest.root_ca is null.
[[nodiscard]] const Bytes& apple_root();
// One or more certificates in PEM, as attest.root_ca holds them. Errors: not_found (none), bad_base64, malformed.
[[nodiscard]] Result<std::vector<Bytes>> parse_root_certificates(std::string_view pem);

// Verifies attestations: milliseconds each, so the worker does it, not the loop. Remembers a bounded number of
// intermediates that chained to a root, by their hash, which halves the work. Not thread-safe.
class AttestationVerifier {
 public:
  explicit AttestationVerifier(AttestPolicy policy);
  ~AttestationVerifier();
  AttestationVerifier(AttestationVerifier&&) noexcept;
  AttestationVerifier& operator=(AttestationVerifier&&) noexcept;

  // object: the decoded CBOR, at most 64 KiB. client_data_hash: 1-wire 1.1.
  [[nodiscard]] boost::system::result<Attested, AttestFault> verify(ByteView object, const Sha256& client_data_hash,
                                                                    WallTime now);

  [[nodiscard]] std::size_t remembered() const noexcept;  // intermediates

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Did the key sign this request for this app? Returns the counter, which the caller must find greater than the last
// one. About 0.1 ms: runs on the loop.
[[nodiscard]] boost::system::result<std::uint32_t, AttestFault> verify_assertion(ByteView assertion,
                                                                                 const P256Point& point,
                                                                                 std::string_view app_id,
                                                                                 const Sha256& client_data_hash);

// The value of the leaf's extension 1.2.840.113635.100.8.2: SEQUENCE { [1] EXPLICIT OCTET STRING (32 bytes) } in DER
// and nothing else. Errors: malformed.
[[nodiscard]] Result<Sha256> parse_nonce_extension(ByteView der);

}  // namespace tandem::protocol
