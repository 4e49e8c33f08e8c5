#include "tandem/core/crypto.hpp"

#include <cassert>
#include <memory>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sodium.h>

namespace tandem {
namespace {

struct Free {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Context = std::unique_ptr<EVP_MD_CTX, Free>;

Sha256 hmac(ByteView key, ByteView data) {
  Sha256 out{};
  unsigned int n = 0;
  static const std::uint8_t none = 0;  // OpenSSL takes a null key for "as before"
  const auto* made = HMAC(EVP_sha256(), key.empty() ? &none : key.data(), static_cast<int>(key.size()), data.data(),
                          data.size(), out.data(), &n);
  assert(made != nullptr && n == out.size());
  (void)made;
  return out;
}

}  // namespace

Sha256 sha256(ByteView data) {
  Sha256 out{};
  SHA256(data.data(), data.size(), out.data());
  return out;
}

Sha256 hkdf_sha256(ByteView ikm, ByteView salt, ByteView info) {
  // RFC 5869 with one block of output: extract, then expand once.
  static constexpr Sha256 zeros{};
  const Sha256 prk = hmac(salt.empty() ? ByteView(zeros) : salt, ikm);
  Bytes block(info.begin(), info.end());
  block.push_back(1);
  return hmac(prk, block);
}

Ed25519PublicKey ed25519_public_key(const Ed25519Seed& seed) {
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  Ed25519PublicKey out{};
  std::size_t n = out.size();
  const int ok = key ? EVP_PKEY_get_raw_public_key(key.get(), out.data(), &n) : 0;
  assert(ok == 1 && n == out.size());
  (void)ok;
  return out;
}

Ed25519Signature ed25519_sign(const Ed25519Seed& seed, ByteView message) {
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  const Context context(EVP_MD_CTX_new());
  Ed25519Signature out{};
  std::size_t n = out.size();
  const bool ok = EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                  EVP_DigestSign(context.get(), out.data(), &n, message.data(), message.size()) == 1;
  assert(ok && n == out.size());
  (void)ok;
  return out;
}

bool ed25519_verify(const Ed25519PublicKey& public_key, ByteView message, ByteView signature) {
  if (signature.size() != 64) return false;
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, public_key.data(), public_key.size()));
  const Context context(EVP_MD_CTX_new());
  if (!key || !context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) return false;
  return EVP_DigestVerify(context.get(), signature.data(), signature.size(), message.data(), message.size()) == 1;
}

bool ed25519_is_valid_key(const Ed25519PublicKey& key) { return crypto_core_ed25519_is_valid_point(key.data()) == 1; }

bool equal_secrets(ByteView a, ByteView b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tandem
