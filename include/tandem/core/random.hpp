// Where the pure half gets its randomness: handed in, so that a test or a simulation can replay it.
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual void fill(std::span<std::uint8_t> out) = 0;  // never fails; cryptographically strong in production

  // Uniform in [0, bound); bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1).
  [[nodiscard]] double unit();
};

// A fast deterministic source (xoshiro256**) for tests, simulation and jitter. Not for secrets.
class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed) noexcept;
  void fill(std::span<std::uint8_t> out) override;
  [[nodiscard]] std::uint64_t next() noexcept;

 private:
  std::uint64_t s_[4];
};

}  // namespace tandem
