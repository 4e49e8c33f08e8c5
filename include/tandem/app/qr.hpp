// A QR code as lines of half blocks, two modules a character, with the quiet zone that scanners need. It draws dark on
// light by colour escapes, whatever the terminal's own colours are and whatever stdout is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::app {

// Nothing where the text does not fit a QR code (about 2.9 KB).
[[nodiscard]] std::optional<std::string> draw_qr(std::string_view text);

}  // namespace tandem::app
