// A keyed hash for tables that strangers can fill: they cannot choose names that collide without the key.
#pragma once

#include "tandem/core/base64.hpp"
#include "tandem/core/ids.hpp"

#include <cstdint>

namespace tandem {

struct SipKey {
  std::uint64_t k0 = 0, k1 = 0;
};

[[nodiscard]] std::uint64_t siphash24(SipKey key, ByteView data) noexcept;

// For std::unordered_map<RoomName, ..., KeyedHash> and the like; the key comes from the injected randomness.
struct KeyedHash {
  SipKey key;
  std::size_t operator()(const RoomName& n) const noexcept { return siphash24(key, n.digest()); }
  std::size_t operator()(const ClientKey& c) const noexcept { return siphash24(key, c.bytes); }
};

}  // namespace tandem
