// The OpenSSL side of a Certificate, shared between its loader and the TLS context.
#pragma once

#include "tandem/net/certificate.hpp"
#include "tandem/net/openssl_handle.hpp"

#include <vector>

namespace tandem::net {

struct Certificate::Parts {
  X509Ptr leaf;
  std::vector<X509Ptr> intermediates;
  KeyPtr key;
};

}  // namespace tandem::net
