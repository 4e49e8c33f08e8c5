#include "protocol/attest_chain.hpp"

#include <algorithm>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

namespace tandem::protocol {

namespace {

constexpr std::size_t kRemembered = 16;  // Apple signs with one or two intermediates at a time
constexpr int kSecurityLevel = 2;        // 112 bits: no SHA-1, no short RSA
constexpr int kChain = 2;                // what is verified, and its issuer

struct FreeContext {
  void operator()(X509_STORE_CTX* p) const noexcept { X509_STORE_CTX_free(p); }
};

AttestFault fault_of(int error) noexcept {
  switch (error) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
    case X509_V_ERR_CERT_HAS_EXPIRED: return AttestFault::expired;
    case X509_V_ERR_INVALID_CA: return AttestFault::not_a_ca;
    default: return AttestFault::untrusted;
  }
}

// Verifies `subject` against the certificates of `store`, of which its issuer must be one. On success `issuer`, where
// wanted, gets that one.
std::optional<AttestFault> verify_against(X509_STORE& store, X509& subject, WallTime now, unsigned long flags,
                                          CertificatePtr* issuer) {
  const std::unique_ptr<X509_STORE_CTX, FreeContext> context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), &store, &subject, nullptr) != 1) return AttestFault::untrusted;
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(parameters, now.time_since_epoch().count());
  X509_VERIFY_PARAM_set_flags(parameters, flags);
  X509_VERIFY_PARAM_set_auth_level(parameters, kSecurityLevel);
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (!good) return fault_of(X509_STORE_CTX_get_error(context.get()));
  const STACK_OF(X509)* chain = X509_STORE_CTX_get0_chain(context.get());
  if (sk_X509_num(chain) != kChain)
    return AttestFault::untrusted;  // a trusted certificate handed in as its own subject
  if (issuer != nullptr) {
    X509* found = sk_X509_value(chain, 1);
    X509_up_ref(found);
    issuer->reset(found);
  }
  return std::nullopt;
}

bool within_validity(const X509& certificate, WallTime now) {
  std::time_t at = now.time_since_epoch().count();
  return X509_cmp_time(X509_get0_notBefore(&certificate), &at) < 0 &&
         X509_cmp_time(X509_get0_notAfter(&certificate), &at) > 0;
}

bool may_sign_certificates(X509& certificate) {
  if (X509_check_ca(&certificate) != 1) return false;
  const std::uint32_t usage = X509_get_key_usage(&certificate);  // all ones where the extension is absent
  return (usage & KU_KEY_CERT_SIGN) != 0;
}

}  // namespace

CertificatePtr decode_certificate(ByteView der) {
  const unsigned char* at = der.data();
  CertificatePtr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (!certificate || at != der.data() + der.size()) return nullptr;
  // OpenSSL also reads BER. What does not come out as it went in is no DER.
  unsigned char* encoded = nullptr;
  const int size = i2d_X509(certificate.get(), &encoded);
  const bool same = size >= 0 && std::ranges::equal(der, ByteView(encoded, static_cast<std::size_t>(size)));
  OPENSSL_free(encoded);
  ERR_clear_error();
  return same ? std::move(certificate) : nullptr;
}

ChainVerifier::ChainVerifier(const std::vector<Bytes>& roots) : roots_(X509_STORE_new()) {
  for (const Bytes& der : roots) {
    const CertificatePtr root = decode_certificate(der);
    if (root) X509_STORE_add_cert(roots_.get(), root.get());
  }
  ERR_clear_error();
}

boost::system::result<ChainVerifier::Known, AttestFault> ChainVerifier::learn(ByteView intermediate, const Sha256& hash,
                                                                              WallTime now) const {
  Known known{hash, decode_certificate(intermediate), nullptr};
  if (!known.intermediate) return AttestFault::bad_certificate;
  if (!may_sign_certificates(*known.intermediate)) return AttestFault::not_a_ca;
  if (const auto fault = verify_against(*roots_, *known.intermediate, now, 0, &known.root)) return *fault;
  return known;
}

std::optional<AttestFault> ChainVerifier::verify(X509& leaf, ByteView intermediate, WallTime now) {
  const Sha256 hash = sha256(intermediate);
  auto known = std::ranges::find(known_, hash, &Known::hash);
  if (known == known_.end()) {
    auto learnt = learn(intermediate, hash, now);
    if (!learnt) return learnt.error();
    if (known_.size() == kRemembered) known_.pop_front();
    known_.push_back(std::move(*learnt));
    known = std::prev(known_.end());
  }
  // Its signature was checked once and for all; its time, and its root's, are checked each time.
  if (!within_validity(*known->root, now) || !within_validity(*known->intermediate, now)) return AttestFault::expired;
  const StorePtr store(X509_STORE_new());
  if (!store || X509_STORE_add_cert(store.get(), known->intermediate.get()) != 1) return AttestFault::untrusted;
  return verify_against(*store, leaf, now, X509_V_FLAG_PARTIAL_CHAIN, nullptr);
}

}  // namespace tandem::protocol
