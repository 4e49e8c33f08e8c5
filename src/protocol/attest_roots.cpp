#include "protocol/attest_chain.hpp"

#include <algorithm>
#include <cctype>

namespace tandem::protocol {

// By hand, as OpenSSL's reader of PEM works on BIOs, which are files and sockets to the layer check, and rightly so.
Result<std::vector<Bytes>> parse_root_certificates(std::string_view pem) {
  static constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----", kEnd = "-----END CERTIFICATE-----";
  std::vector<Bytes> roots;
  for (std::size_t at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at)) {
    at += kBegin.size();
    const std::size_t end = pem.find(kEnd, at);
    if (end == std::string_view::npos) return Error::malformed;
    std::string body(pem.substr(at, end - at));
    std::erase_if(body, [](unsigned char c) { return std::isspace(c) != 0; });
    auto der = base64_decode(body);
    if (!der) return der.error();
    if (!decode_certificate(*der)) return Error::malformed;
    roots.push_back(std::move(*der));
    at = end;
  }
  if (roots.empty()) return Error::not_found;
  return roots;
}

}  // namespace tandem::protocol
