#include "tandem/protocol/attest.hpp"
#include "tandem/protocol/cbor_reader.hpp"

#include <algorithm>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>

namespace tandem::protocol {

namespace {

using Kind = CborDocument::Kind;

template <auto free_function>
struct Free {
  template <class T>
  void operator()(T* p) const noexcept {
    free_function(p);
  }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using KeyContextPtr = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;
using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;

// Null where the point is not one of the curve.
KeyPtr make_key(const P256Point& point) {
  char group[] = "prime256v1";
  P256Point copy = point;  // OpenSSL's parameters are not const, though they are only read
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
                                   OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, copy.data(), copy.size()),
                                   OSSL_PARAM_construct_end()};
  const KeyContextPtr context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (!context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, const_cast<OSSL_PARAM*>(parameters)) != 1) {
    return nullptr;
  }
  return KeyPtr(key);
}

bool signed_by(const P256Point& point, const Sha256& message, ByteView signature) {
  const KeyPtr key = make_key(point);
  const DigestContextPtr context(EVP_MD_CTX_new());
  const bool good =
      key && context && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.data(), signature.size(), message.data(), message.size()) == 1;
  ERR_clear_error();  // a refused signature leaves entries behind that TLS on this thread would take for its own
  return good;
}

constexpr std::size_t kAppHashBytes = 32, kAssertionCounterAt = 33, kShortestData = 37;

}  // namespace

boost::system::result<std::uint32_t, AttestFault> verify_assertion(ByteView assertion, const P256Point& point,
                                                                   std::string_view app_id,
                                                                   const Sha256& client_data_hash) {
  if (app_id.empty()) return AttestFault::not_configured;
  const auto document = CborDocument::parse(assertion);
  if (!document) return AttestFault::bad_cbor;
  const auto* signature = document->find(document->root(), "signature", Kind::bytes);
  const auto* data = document->find(document->root(), "authenticatorData", Kind::bytes);
  if (signature == nullptr || data == nullptr) return AttestFault::missing_field;
  if (data->data.size() < kShortestData) return AttestFault::short_data;
  if (!std::ranges::equal(data->data.first(kAppHashBytes), sha256(bytes_of(app_id)))) return AttestFault::wrong_app;

  Bytes signed_part(data->data.begin(), data->data.end());
  signed_part.insert(signed_part.end(), client_data_hash.begin(), client_data_hash.end());
  // The nonce itself is the message: ECDSA-with-SHA-256 hashes it once more (1-wire 1.7).
  if (!signed_by(point, sha256(signed_part), signature->data)) return AttestFault::bad_signature;

  std::uint32_t counter = 0;
  for (const std::uint8_t byte : data->data.subspan(kAssertionCounterAt, 4)) counter = counter << 8 | byte;
  return counter;
}

}  // namespace tandem::protocol
