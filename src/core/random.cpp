#include "tandem/core/random.hpp"

#include <bit>
#include <cstring>

namespace tandem {

std::uint64_t RandomSource::below(std::uint64_t bound) {
  // Rejection: the top, incomplete multiple of bound would favour small values.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    std::uint64_t value = 0;
    std::uint8_t raw[8];
    fill(raw);
    std::memcpy(&value, raw, sizeof value);
    if (value < limit) return value % bound;
  }
}

double RandomSource::unit() {
  std::uint64_t value = 0;
  std::uint8_t raw[8];
  fill(raw);
  std::memcpy(&value, raw, sizeof value);
  return static_cast<double>(value >> 11) * 0x1p-53;
}

SeededRandom::SeededRandom(std::uint64_t seed) noexcept {
  for (std::uint64_t& word : s_) {  // splitmix64 spreads a small seed over the whole state
    seed += 0x9E3779B97F4A7C15u;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    word = z ^ (z >> 31);
  }
}

std::uint64_t SeededRandom::next() noexcept {
  const std::uint64_t result = std::rotl(s_[1] * 5, 7) * 9;
  const std::uint64_t t = s_[1] << 17;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = std::rotl(s_[3], 45);
  return result;
}

void SeededRandom::fill(std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size(); i += 8) {
    const std::uint64_t word = next();
    std::memcpy(out.data() + i, &word, std::min<std::size_t>(8, out.size() - i));
  }
}

}  // namespace tandem
