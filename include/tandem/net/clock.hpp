// Reads the clocks: once per dispatch of the loop, so that everything in one dispatch sees one time.
#pragma once

#include "tandem/core/time.hpp"

namespace tandem::net {

[[nodiscard]] TimePoint monotonic_now() noexcept;
[[nodiscard]] WallTime wall_now() noexcept;
[[nodiscard]] inline Now read_clock() noexcept { return {monotonic_now(), wall_now()}; }

}  // namespace tandem::net
