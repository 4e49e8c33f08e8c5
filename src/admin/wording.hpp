// Numbers as people read them, and text made safe for HTML.
#pragma once

#include "tandem/core/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::admin {

[[nodiscard]] std::string escaped(std::string_view text);           // for HTML text and attributes
[[nodiscard]] std::string bytes_text(double bytes);                 // "1.5 MiB"
[[nodiscard]] std::string duration_text(Duration d);                // "3 d 4 h", "12 s", "0.4 s"
[[nodiscard]] std::string count_text(std::uint64_t n);              // "65 536", with narrow no-break spaces
[[nodiscard]] std::string percent_text(double part, double whole);  // "33.3 %"
[[nodiscard]] std::string fixed(double value, int decimals);

}  // namespace tandem::admin
