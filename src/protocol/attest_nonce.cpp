#include "tandem/protocol/attest.hpp"

#include <algorithm>

namespace tandem::protocol {

Result<Sha256> parse_nonce_extension(ByteView der) {
  // DER has one encoding for each value, so the head of this one is constant.
  static constexpr std::uint8_t kHead[] = {0x30, 0x24, 0xa1, 0x22, 0x04, 0x20};
  Sha256 nonce{};
  if (der.size() != sizeof kHead + nonce.size()) return Error::malformed;
  if (!std::equal(std::begin(kHead), std::end(kHead), der.begin())) return Error::malformed;
  std::ranges::copy(der.subspan(sizeof kHead), nonce.begin());
  return nonce;
}

}  // namespace tandem::protocol
