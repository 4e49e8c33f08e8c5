// Owning pointers for OpenSSL's objects.
#pragma once

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace tandem::net {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};

using BioPtr = std::unique_ptr<BIO, Freer<&BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<&EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<&X509_free>>;

}  // namespace tandem::net
