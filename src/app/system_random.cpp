#include "tandem/app/system_random.hpp"

#include <cstdlib>

#include <openssl/rand.h>

namespace tandem::app {

void SystemRandom::fill(std::span<std::uint8_t> out) {
  if (!out.empty() && RAND_bytes(out.data(), static_cast<int>(out.size())) != 1) std::abort();
}

}  // namespace tandem::app
