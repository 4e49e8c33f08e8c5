#include "wording.hpp"

#include <array>
#include <cstdio>

namespace tandem::admin {

std::string fixed(double value, int decimals) {
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%.*f", decimals, value);
  return out.data();
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string bytes_text(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fixed(bytes, unit == 0 || bytes >= 100 ? 0 : 1) + ' ' + kUnits[unit];
}

std::string duration_text(Duration d) {
  if (d < Duration::zero()) return "-" + duration_text(-d);
  const double s = to_seconds(d);
  if (s < 10) return fixed(s, 1) + " s";
  const auto whole = static_cast<std::int64_t>(s);
  const auto two = [](std::int64_t a, const char* au, std::int64_t b, const char* bu) {
    return std::to_string(a) + ' ' + au + (b != 0 ? ' ' + std::to_string(b) + ' ' + bu : std::string{});
  };
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return two(whole / 60, "min", whole % 60, "s");
  if (whole < 86400) return two(whole / 3600, "h", whole / 60 % 60, "min");
  return two(whole / 86400, "d", whole / 3600 % 24, "h");
}

std::string count_text(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, "\u202f");
  }
  return digits;
}

std::string percent_text(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) + " %" : "0 %"; }

}  // namespace tandem::admin
