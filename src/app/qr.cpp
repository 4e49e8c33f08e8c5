#include "tandem/app/qr.hpp"

#include <memory>

#include <qrencode.h>

namespace tandem::app {

std::optional<std::string> draw_qr(std::string_view text) {
  const std::string terminated(text);
  const std::unique_ptr<QRcode, decltype(&QRcode_free)> code(
      QRcode_encodeString(terminated.c_str(), 0, QR_ECLEVEL_L, QR_MODE_8, 1), &QRcode_free);
  if (!code) return std::nullopt;

  constexpr int quiet = 4;
  const int width = code->width;
  const auto dark = [&](int row, int column) {
    const bool inside = row >= 0 && row < width && column >= 0 && column < width;
    return inside && (code->data[row * width + column] & 1) != 0;
  };
  std::string out;
  for (int row = -quiet; row < width + quiet; row += 2) {
    out += "\x1b[30;107m";  // black on bright white
    for (int column = -quiet; column < width + quiet; ++column) {
      const bool upper = dark(row, column), lower = dark(row + 1, column);
      out += upper && lower ? "█" : upper ? "▀" : lower ? "▄" : " ";
    }
    out += "\x1b[0m\n";
  }
  return out;
}

}  // namespace tandem::app
