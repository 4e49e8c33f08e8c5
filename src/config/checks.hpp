// Combinations of valid values that cannot work together (3-operations 3.2, 2-sharding 2.5).
#pragma once

#include "tandem/config/config.hpp"

#include <string>
#include <vector>

namespace tandem::config {

struct Conflict {
  std::string path;  // the key to blame
  std::string message;
};

[[nodiscard]] std::vector<Conflict> conflicts(const Config& config);

}  // namespace tandem::config
