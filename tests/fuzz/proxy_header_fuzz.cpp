// The PROXY protocol's head: a prefix of what parses asks for more and never says something else, and what follows
// changes nothing.
#include "tandem/net/client_address.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem::net;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const auto parsed = parse_proxy_header(in);
  if (const auto* header = std::get_if<ProxyHeader>(&parsed)) {
    if (header->size > size || header->size > kMaxProxyHeader) std::abort();
    for (std::size_t n = 0; n < header->size; ++n)
      if (!std::holds_alternative<ProxyNeedMore>(parse_proxy_header(in.substr(0, n)))) std::abort();
    const auto again = parse_proxy_header(in.substr(0, header->size));
    if (!std::holds_alternative<ProxyHeader>(again) || std::get<ProxyHeader>(again).client != header->client)
      std::abort();
  }
  (void)AddressBlock::parse(in);
  return 0;
}
