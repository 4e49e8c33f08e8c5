// Gives free memory back to the kernel after many connections have come and gone: the allocator keeps what it once had,
// and what a crowd leaves behind for some seconds (rooms that remember their proofs) would count as used for ever.
#pragma once

#include "tandem/core/time.hpp"

#include <cstdint>

namespace tandem::net {

class HeapTrim {
 public:
  void accepted() noexcept { ++accepted_; }
  // Called once a second. Costs time by the number of free blocks, so seldom, and not at all on a quiet box.
  void look(TimePoint now) noexcept;

 private:
  static constexpr std::uint32_t kCrowd = 250;
  static constexpr int kRounds = 4;  // what they leave goes within ten seconds, give or take

  std::uint32_t accepted_ = 0;
  int rounds_ = 0;
  TimePoint next_{};
};

}  // namespace tandem::net
