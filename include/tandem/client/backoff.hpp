// How long an endpoint waits before it tries again: one counter of consecutive failures over all their classes
// (2-sharding 2.8.5). Knows no clock; the caller adds the wait to its own time.
#pragma once

#include "tandem/core/random.hpp"
#include "tandem/core/time.hpp"

namespace tandem::client {

// The longest wait after `failures` consecutive failures (1 or more): 3 s after the first, then min(30 s, 1 s x
// 2^failures).
[[nodiscard]] Duration backoff_bound(int failures) noexcept;

class Backoff {
 public:
  // Counts a failure and returns the wait that it costs, uniform in [0, backoff_bound(failures())].
  [[nodiscard]] Duration next(RandomSource& random);
  void count() noexcept { ++failures_; }  // a failure whose wait the rules fix
  void reset() noexcept { failures_ = 0; }
  [[nodiscard]] int failures() const noexcept { return failures_; }

 private:
  int failures_ = 0;
};

}  // namespace tandem::client
