#include "tandem/net/clock.hpp"

#include <chrono>

namespace tandem::net {

TimePoint monotonic_now() noexcept {
  return TimePoint{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

WallTime wall_now() noexcept { return std::chrono::floor<seconds>(std::chrono::system_clock::now()); }

}  // namespace tandem::net
