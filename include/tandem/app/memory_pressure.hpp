// How hard the box is pressed for memory: the kernel's PSI, "some avg10", of our cgroup where it has one
// (3-operations 3.2, shed).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::app {

// The percentage in a PSI file's "some" line; nothing where the text is not one.
[[nodiscard]] std::optional<double> parse_pressure(std::string_view text);

class MemoryPressure {
 public:
  // configured: shed.pressure_file. Without it, the cgroup's memory.pressure, else /proc/pressure/memory.
  explicit MemoryPressure(std::optional<std::string> configured);

  [[nodiscard]] std::optional<double> sample()
      const;  // percent; nothing where the file cannot be read. A few microseconds
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  std::string file_;
};

}  // namespace tandem::app
