// Durations and sizes as people write them: a decimal number and its unit, nothing between, "500ms", "1.5h", "64KiB".
// Both the configuration and tandemctl's options are read by these.
#pragma once

#include "tandem/core/error.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <string>
#include <string_view>

namespace tandem::config {

inline constexpr Duration kMaxDuration =
    std::chrono::hours(24 * 36500);  // sums of a few of them still fit a time point
inline constexpr ByteCount kMaxSize{1ull << 60};

// Units ms s m h d. Zero is a duration. Errors: malformed (no number, no unit, a sign, a space), bad_value (above
// kMaxDuration).
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);
// Units B KiB MiB GiB TiB; fractions of a byte are dropped. Errors: malformed, bad_value (above kMaxSize).
[[nodiscard]] Result<ByteCount> parse_size(std::string_view text);

// The shortest exact form in the largest unit: "90s" stays "90s", "120s" becomes "2m".
[[nodiscard]] std::string format_duration(Duration d);
[[nodiscard]] std::string format_size(ByteCount n);
// For reading, rounded: "3.2 GiB", "17 s", "2 h 5 min".
[[nodiscard]] std::string describe_size(double bytes);
[[nodiscard]] std::string describe_duration(Duration d);

}  // namespace tandem::config
