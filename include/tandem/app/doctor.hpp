// What can be wrong with a relay's surroundings: its certificate, its DNS name, its entry in the map, the clock,
// descriptors, kernel settings, and the relay itself. Every finding that is not good comes with what to do. Reads only;
// opens no port.
#pragma once

#include "tandem/config/config.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::app {

enum class Health : std::uint8_t { good, warning, wrong };

struct Finding {
  Health health = Health::good;
  std::string about;  // "certificate"
  std::string text;
  std::string fix;  // empty where good
};
using Findings = std::vector<Finding>;

[[nodiscard]] Findings examine_certificate(const config::Config& config, WallTime now);
[[nodiscard]] Findings examine_name(const config::Config& config);
// What the map's server says the time is goes to `server_time`, where it says one.
[[nodiscard]] Findings examine_map(const config::Config& config, std::optional<WallTime>& server_time);
[[nodiscard]] Findings examine_clock(WallTime now, std::optional<WallTime> server_time);
[[nodiscard]] Findings examine_state(const config::Config& config);
// The running relay, where it runs; a relay that is not running is a warning.
[[nodiscard]] Findings examine_relay(const config::Config& config);
// The certificate that the running relay shows, against the file's. Empty where there is nothing to compare.
[[nodiscard]] Findings examine_served(const config::Config& config);
[[nodiscard]] Findings examine_descriptors(const config::Config& config, std::optional<std::uint64_t> limit_of_relay);
// proc: "/proc", or a copy of its sys/ for tests.
[[nodiscard]] Findings examine_kernel(const config::Config& config, const std::string& proc);

}  // namespace tandem::app
