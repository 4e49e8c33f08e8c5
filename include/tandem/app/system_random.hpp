// The process's one source of cryptographic randomness, for the pure half to be given.
#pragma once

#include "tandem/core/random.hpp"

namespace tandem::app {

// Aborts where the system has no randomness to give: nothing may be admitted on a guessable nonce.
class SystemRandom final : public RandomSource {
 public:
  void fill(std::span<std::uint8_t> out) override;
};

}  // namespace tandem::app
