#include "shard/map_fault.hpp"

namespace tandem::shard {

namespace {

constexpr std::size_t kMaxShown = 200;

// Printable ASCII only: a map may come from anywhere, and what it says ends up in logs and terminals.
std::string printable(std::string_view value) {
  std::string out;
  for (const char c : value.substr(0, kMaxShown)) {
    const auto u = static_cast<unsigned char>(c);
    out += u >= 0x20 && u < 0x7f ? c : '?';
  }
  if (value.size() > kMaxShown) out += "...";
  return out;
}

}  // namespace

std::string range_path(std::size_t index, std::string_view field) {
  std::string path = "ranges[" + std::to_string(index) + "]";
  if (!field.empty()) path.append(".").append(field);
  return path;
}

MapFault fault(MapFaultKind kind, const std::string& where, std::string_view value, std::string_view says) {
  MapFault f{kind, printable(where), printable(value), {}};
  f.message = std::string(label(kind)) + ": ";
  if (!f.where.empty()) f.message += f.where + ": ";
  if (!f.value.empty()) f.message += f.value + " ";
  f.message += printable(says);
  return f;
}

std::optional<MapFault> check_host(std::string_view host, std::size_t index) {
  if (Authority::parse(host)) return {};
  return fault(MapFaultKind::invalid_host, range_path(index, "host"), host.empty() ? "\"\"" : host,
               "is not a bare authority (a lowercase host name or address, with an optional :port)");
}

std::optional<MapFault> check_range(const Range& range, std::size_t index) {
  if (auto bad = check_host(range.host, index)) return bad;
  if (range.low > range.high)
    return fault(MapFaultKind::invalid_range, range_path(index),
                 std::to_string(range.low) + "-" + std::to_string(range.high), "has its low above its high");
  return {};
}

}  // namespace tandem::shard
