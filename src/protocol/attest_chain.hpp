// The certificate side of App Attest: does a leaf chain through exactly one intermediate to a trusted root, at this
// time? An intermediate that did is remembered by its hash, so that its signature (P-384) is not checked again for each
// phone.
#pragma once

#include "tandem/protocol/attest.hpp"

#include <deque>
#include <memory>
#include <vector>

#include <openssl/x509.h>

namespace tandem::protocol {

struct FreeCertificate {
  void operator()(X509* p) const noexcept { X509_free(p); }
};
using CertificatePtr = std::unique_ptr<X509, FreeCertificate>;

struct FreeStore {
  void operator()(X509_STORE* p) const noexcept { X509_STORE_free(p); }
};
using StorePtr = std::unique_ptr<X509_STORE, FreeStore>;

// Null unless the bytes are one certificate in DER and nothing else.
[[nodiscard]] CertificatePtr decode_certificate(ByteView der);

class ChainVerifier {
 public:
  explicit ChainVerifier(const std::vector<Bytes>& roots);

  // The fault, or nothing where the chain holds. `intermediate` is decoded here, and only where it is not remembered.
  [[nodiscard]] std::optional<AttestFault> verify(X509& leaf, ByteView intermediate, WallTime now);

  [[nodiscard]] std::size_t remembered() const noexcept { return known_.size(); }

 private:
  struct Known {
    Sha256 hash{};
    CertificatePtr intermediate, root;
  };

  [[nodiscard]] boost::system::result<Known, AttestFault> learn(ByteView intermediate, const Sha256& hash,
                                                                WallTime now) const;

  StorePtr roots_;
  std::deque<Known> known_;  // oldest first, bounded
};

}  // namespace tandem::protocol
