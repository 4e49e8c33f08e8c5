// The leaf's nonce extension: one encoding for one nonce, so what is accepted comes out again byte for byte.
#include "tandem/protocol/attest.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem;
  const auto nonce = protocol::parse_nonce_extension({data, size});
  if (!nonce) return 0;
  Bytes again{0x30, 0x24, 0xa1, 0x22, 0x04, 0x20};
  again.insert(again.end(), nonce->begin(), nonce->end());
  if (!std::equal(again.begin(), again.end(), data, data + size)) std::abort();
  return 0;
}
