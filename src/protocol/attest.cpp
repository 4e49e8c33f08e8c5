#include "tandem/protocol/attest.hpp"

#include "protocol/attest_chain.hpp"
#include "tandem/protocol/cbor_reader.hpp"

#include <algorithm>

#include <openssl/evp.h>
#include <openssl/objects.h>

namespace tandem::protocol {

namespace {

using Kind = CborDocument::Kind;

constexpr std::string_view kFormat = "apple-appattest";
constexpr char kNonceExtension[] = "1.2.840.113635.100.8.2";

// Where things are in authData (WebAuthn, "Authenticator Data"; no flag is looked at, as Apple's steps name none).
constexpr std::size_t kAppHashAt = 0, kCounterAt = 33, kAaguidAt = 37, kIdLengthAt = 53, kIdAt = 55, kIdBytes = 32;

std::string_view aaguid(AttestEnvironment environment) {
  using namespace std::string_view_literals;
  return environment == AttestEnvironment::production ? "appattest\0\0\0\0\0\0\0"sv : "appattestdevelop"sv;
}

// What the object holds, as views into it.
struct Parts {
  ByteView leaf, intermediate, auth_data;
};

boost::system::result<Parts, AttestFault> take_apart(const CborDocument& document) {
  const auto* format = document.find(document.root(), "fmt", Kind::text);
  const auto* statement = document.find(document.root(), "attStmt", Kind::map);
  const auto* auth_data = document.find(document.root(), "authData", Kind::bytes);
  if (format == nullptr || statement == nullptr || auth_data == nullptr) return AttestFault::missing_field;
  if (!std::ranges::equal(format->data, bytes_of(kFormat))) return AttestFault::wrong_format;
  const auto* chain = document.find(*statement, "x5c", Kind::array);
  if (chain == nullptr) return AttestFault::missing_field;
  if (chain->number != 2) return AttestFault::wrong_chain_length;
  const auto certificates = document.entries(*chain);
  if (certificates[0]->kind != Kind::bytes || certificates[1]->kind != Kind::bytes) return AttestFault::bad_certificate;
  return Parts{certificates[0]->data, certificates[1]->data, auth_data->data};
}

std::optional<AttestFault> check_auth_data(ByteView data, const AttestPolicy& policy) {
  if (data.size() < kIdAt + kIdBytes) return AttestFault::short_data;
  if (!std::ranges::equal(data.subspan(kAppHashAt, 32), sha256(bytes_of(policy.app_id)))) return AttestFault::wrong_app;
  if (std::ranges::any_of(data.subspan(kCounterAt, 4), [](std::uint8_t b) { return b != 0; }))
    return AttestFault::wrong_counter;
  if (!std::ranges::equal(data.subspan(kAaguidAt, 16), bytes_of(aaguid(policy.environment)))) {
    return AttestFault::wrong_environment;
  }
  if (data[kIdLengthAt] != 0 || data[kIdLengthAt + 1] != kIdBytes) return AttestFault::wrong_key_id;
  return std::nullopt;
}

std::optional<P256Point> point_of(X509& certificate) {
  X509_PUBKEY* public_key = X509_get_X509_PUBKEY(&certificate);
  EVP_PKEY* key = X509_get0_pubkey(&certificate);  // also refuses a point that is not on its curve
  if (public_key == nullptr || key == nullptr) return std::nullopt;
  char group[32] = {};
  if (EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) != 1 || std::string_view(group) != "prime256v1") {
    return std::nullopt;
  }
  P256Point point{};
  const unsigned char* bits = nullptr;
  int size = 0;
  if (X509_PUBKEY_get0_param(nullptr, &bits, &size, nullptr, public_key) != 1) return std::nullopt;
  if (static_cast<std::size_t>(size) != point.size() || bits[0] != 0x04) return std::nullopt;
  std::copy_n(bits, point.size(), point.begin());
  return point;
}

std::optional<Sha256> nonce_of(const X509& certificate) {
  struct Id {
    ASN1_OBJECT* value = OBJ_txt2obj(kNonceExtension, 1);
    Id() = default;
    Id(const Id&) = delete;
    Id& operator=(const Id&) = delete;
    ~Id() { ASN1_OBJECT_free(value); }
  } const id;
  const int at = X509_get_ext_by_OBJ(&certificate, id.value, -1);
  if (at < 0 || X509_get_ext_by_OBJ(&certificate, id.value, at) >= 0) return std::nullopt;
  const ASN1_OCTET_STRING* value = X509_EXTENSION_get_data(X509_get_ext(&certificate, at));
  const auto nonce =
      parse_nonce_extension({ASN1_STRING_get0_data(value), static_cast<std::size_t>(ASN1_STRING_length(value))});
  return nonce ? std::optional(*nonce) : std::nullopt;
}

Sha256 nonce_for(ByteView auth_data, const Sha256& client_data_hash) {
  Bytes both(auth_data.begin(), auth_data.end());
  both.insert(both.end(), client_data_hash.begin(), client_data_hash.end());
  return sha256(both);
}

}  // namespace

struct AttestationVerifier::Impl {
  AttestPolicy policy;
  ChainVerifier chain;
  explicit Impl(AttestPolicy p) : policy(std::move(p)), chain(policy.roots) {}
};

AttestationVerifier::AttestationVerifier(AttestPolicy policy) : impl_(std::make_unique<Impl>(std::move(policy))) {}
AttestationVerifier::~AttestationVerifier() = default;
AttestationVerifier::AttestationVerifier(AttestationVerifier&&) noexcept = default;
AttestationVerifier& AttestationVerifier::operator=(AttestationVerifier&&) noexcept = default;
std::size_t AttestationVerifier::remembered() const noexcept { return impl_->chain.remembered(); }

// The cheap checks come first, so that junk costs no signature.
boost::system::result<Attested, AttestFault> AttestationVerifier::verify(ByteView object,
                                                                         const Sha256& client_data_hash, WallTime now) {
  if (impl_->policy.app_id.empty()) return AttestFault::not_configured;
  const auto document = CborDocument::parse(object);
  if (!document) return AttestFault::bad_cbor;
  const auto parts = take_apart(*document);
  if (!parts) return parts.error();
  if (const auto fault = check_auth_data(parts->auth_data, impl_->policy)) return *fault;

  const CertificatePtr leaf = decode_certificate(parts->leaf);
  if (!leaf) return AttestFault::bad_certificate;
  const auto point = point_of(*leaf);
  if (!point) return AttestFault::wrong_key_type;
  const Sha256 key_id = sha256(*point);
  if (!std::ranges::equal(parts->auth_data.subspan(kIdAt, kIdBytes), key_id)) return AttestFault::wrong_key_id;
  const auto nonce = nonce_of(*leaf);
  if (!nonce) return AttestFault::no_nonce;
  if (*nonce != nonce_for(parts->auth_data, client_data_hash)) return AttestFault::wrong_nonce;
  if (const auto fault = impl_->chain.verify(*leaf, parts->intermediate, now)) return *fault;
  return Attested{key_id, *point};
}

}  // namespace tandem::protocol
