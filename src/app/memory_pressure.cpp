#include "tandem/app/memory_pressure.hpp"

#include <charconv>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace tandem::app {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad() || text.fail()) return std::nullopt;
  return text.str();
}

// cgroup v2: the line "0::/path" of /proc/self/cgroup.
std::string cgroup_pressure_file() {
  const auto text = read_file("/proc/self/cgroup");
  if (!text) return {};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) return "/sys/fs/cgroup" + line.substr(3) + "/memory.pressure";
  }
  return {};
}

}  // namespace

std::optional<double> parse_pressure(std::string_view text) {
  const std::size_t some = text.find("some ");
  if (some == std::string_view::npos || (some != 0 && text[some - 1] != '\n')) return std::nullopt;
  const std::string_view line = text.substr(some, text.find('\n', some) - some);
  const std::size_t key = line.find("avg10=");
  if (key == std::string_view::npos) return std::nullopt;
  const std::string_view number = line.substr(key + 6);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || !(value >= 0 && value <= 100)) return std::nullopt;
  return value;
}

MemoryPressure::MemoryPressure(std::optional<std::string> configured) {
  if (configured) {
    file_ = *configured;
    return;
  }
  file_ = cgroup_pressure_file();
  if (file_.empty() || ::access(file_.c_str(), R_OK) != 0) file_ = "/proc/pressure/memory";
}

std::optional<double> MemoryPressure::sample() const {
  const auto text = read_file(file_);
  return text ? parse_pressure(*text) : std::nullopt;
}

}  // namespace tandem::app
