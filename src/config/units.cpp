#include "tandem/config/units.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

namespace tandem::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;  // nanoseconds, or bytes
};

constexpr std::array<Unit, 5> kTimeUnits{{{"ms", 1'000'000},
                                          {"s", 1'000'000'000},
                                          {"m", 60'000'000'000},
                                          {"h", 3'600'000'000'000},
                                          {"d", 86'400'000'000'000}}};
constexpr std::array<Unit, 5> kSizeUnits{
    {{"B", 1}, {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}}};

Result<std::uint64_t> parse(std::string_view text, std::span<const Unit> units, std::uint64_t most) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos || end == 0) return make_error_code(Error::malformed);
  const std::string_view number = text.substr(0, end);
  std::optional<std::uint64_t> factor;
  for (const Unit& unit : units) {
    if (unit.name == text.substr(end)) factor = unit.factor;
  }
  const std::size_t dot = number.find('.');
  const bool lone_dot = dot == 0 || dot + 1 == number.size();
  if (!factor || lone_dot || (dot != std::string_view::npos && number.find('.', dot + 1) != std::string_view::npos)) {
    return make_error_code(Error::malformed);
  }
  // Long double holds every 64-bit integer exactly, so whole numbers never round.
  long double value = 0, scale = 1;
  bool fraction = false;
  for (const char c : number) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    value = value * 10 + (c - '0');
    if (fraction) scale *= 10;
    if (value > 1e30L) return make_error_code(Error::bad_value);
  }
  const long double total = value / scale * static_cast<long double>(*factor);
  if (total > static_cast<long double>(most)) return make_error_code(Error::bad_value);
  return static_cast<std::uint64_t>(total);
}

std::string format(std::uint64_t value, std::span<const Unit> units) {
  for (std::size_t i = units.size(); i-- > 0;) {
    if (value >= units[i].factor && value % units[i].factor == 0) {
      return std::to_string(value / units[i].factor) + std::string(units[i].name);
    }
  }
  if (value == 0) return "0" + std::string(units[units[0].name == "ms" ? 1 : 0].name);
  char text[64];
  std::snprintf(text, sizeof text, "%.15g", static_cast<double>(value) / static_cast<double>(units[0].factor));
  return text + std::string(units[0].name);
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  const auto ns = parse(text, kTimeUnits, static_cast<std::uint64_t>(kMaxDuration.count()));
  if (!ns) return ns.error();
  return Duration(static_cast<Duration::rep>(*ns));
}

Result<ByteCount> parse_size(std::string_view text) {
  const auto bytes = parse(text, kSizeUnits, kMaxSize.value);
  if (!bytes) return bytes.error();
  return ByteCount{*bytes};
}

std::string format_duration(Duration d) { return format(static_cast<std::uint64_t>(d.count()), kTimeUnits); }
std::string format_size(ByteCount n) { return format(n.value, kSizeUnits); }

std::string describe_size(double bytes) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kNames)) {
    bytes /= 1024;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, kNames[unit]);
  return text;
}

std::string describe_duration(Duration d) {
  using std::chrono::duration_cast;
  const auto total = duration_cast<seconds>(d).count();
  if (total < 10) {
    char text[48];
    std::snprintf(text, sizeof text, "%.1f s", to_seconds(d));
    return text;
  }
  const auto pair = [](std::int64_t a, const char* unit_a, std::int64_t b, const char* unit_b) {
    std::string out = std::to_string(a) + " " + unit_a;
    return b == 0 ? out : out + " " + std::to_string(b) + " " + unit_b;
  };
  if (total < 60) return std::to_string(total) + " s";
  if (total < 3600) return pair(total / 60, "min", total % 60, "s");
  if (total < 86400) return pair(total / 3600, "h", total % 3600 / 60, "min");
  return pair(total / 86400, "d", total % 86400 / 3600, "h");
}

}  // namespace tandem::config
