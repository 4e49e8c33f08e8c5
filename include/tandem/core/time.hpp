// Points in time for code that never reads a clock: they come in as arguments. The shell reads both clocks once per
// dispatch (net/clock.hpp) and hands them down.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace tandem {

using Duration = std::chrono::nanoseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A tag, not a clock: it has no now(), on purpose.
struct MonotonicTag {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicTag, Duration>;
  static constexpr bool is_steady = true;
};

// Monotonic time: for every deadline, rate and interval within one run.
using TimePoint = std::chrono::time_point<MonotonicTag, Duration>;

// Wall-clock time in whole seconds since 1970 (UTC): only for what outlives the process (retention, months,
// certificates).
using WallTime = std::chrono::sys_seconds;

// What one dispatch of the loop sees.
struct Now {
  TimePoint mono;
  WallTime wall;
};

inline constexpr TimePoint kNever = TimePoint::max();

[[nodiscard]] constexpr double to_seconds(Duration d) noexcept {
  return std::chrono::duration_cast<std::chrono::duration<double>>(d).count();
}

}  // namespace tandem
