// What a reload may change (3-operations 3.2): compares the running configuration with a new one and says, key by key,
// what takes effect now and what waits for a restart.
#pragma once

#include "tandem/config/config.hpp"

#include <string>
#include <vector>

namespace tandem::config {

struct ReloadPlan {
  std::vector<std::string> now;      // changed keys that apply at once: "limits.rooms"
  std::vector<std::string> restart;  // changed keys that wait for a restart: "listen"
  Config effective;                  // the running configuration with what applies at once, applied
};

[[nodiscard]] ReloadPlan plan_reload(const Config& running, const Config& wanted);

}  // namespace tandem::config
