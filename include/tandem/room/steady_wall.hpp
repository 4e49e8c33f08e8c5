// The wall clock as far as retention believes it. It starts as the clock says; from then on a step back is followed at
// once (it only lets things live longer), a step forward is caught up with at one extra second a second. So a clock
// that jumps ahead by years expires nothing at once, and one that is right again after a suspension is believed again
// within that suspension's length. Within one process ages are measured by monotonic time anyway; this only judges
// stamps that an earlier process wrote.
#pragma once

#include "tandem/core/time.hpp"

#include <algorithm>

namespace tandem::room {

class SteadyWall {
 public:
  void observe(Now now) {
    const Fine wall = now.wall;
    if (!started_) {
      started_ = true;
      believed_ = wall;
    } else {
      const Duration elapsed = now.mono - seen_;
      const Fine expected = believed_ + elapsed;
      if (wall > expected) {
        believed_ = std::min(wall, expected + elapsed);
      } else {
        believed_ = wall + kTolerance < expected ? wall : expected;
      }
    }
    seen_ = now.mono;
  }
  [[nodiscard]] WallTime now() const { return std::chrono::floor<seconds>(believed_); }

 private:
  using Fine = std::chrono::time_point<std::chrono::system_clock, Duration>;
  static constexpr Duration kTolerance = seconds(2);  // the wall comes in whole seconds, and slews

  bool started_ = false;
  Fine believed_{};
  TimePoint seen_{};
};

}  // namespace tandem::room
