// Reads a configuration: the whole of it valid, or one line that says what is wrong, where, and what to write instead.
// Nothing is half applied. Reads the config file alone; certificates and the like are checked by app/checker.
#pragma once

#include "tandem/config/config.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace tandem::config {

struct ConfigError {
  std::string file;        // as given; empty for text
  std::size_t line = 0;    // 1-based; 0 where unknown
  std::string path;        // "limits.rooms", "listen[1]"; empty where the fault is the file's
  std::string message;     // what is wrong and what to do
  std::size_t others = 0;  // further faults found in the same reading
  [[nodiscard]] std::string one_line()
      const;  // "/etc/tandem/relay.jsonc:7: limits.rooms: ...", printable, at most 500 characters
};

// base_dir: what relative paths in the text count from; empty leaves them as they are. At most 1 MiB.
[[nodiscard]] std::variant<Config, ConfigError> parse(std::string_view text, const std::string& base_dir = {});
[[nodiscard]] std::variant<Config, ConfigError> load(const std::string& file);

}  // namespace tandem::config
