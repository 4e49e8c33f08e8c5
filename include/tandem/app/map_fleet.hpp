// What the hosts say of themselves through their admin endpoints: /metrics for forecasts and waits, /status for the
// table of desired beside observed. Blocking; several hosts are asked at once.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::app {

struct HostMetrics {
  MapVersion version;       // tandem_shard_map_version
  std::uint64_t rooms = 0;  // spliced, mac_only and phone_only
  std::uint64_t draining_rooms = 0;
};

// Nothing where one of the three families is missing.
[[nodiscard]] std::optional<HostMetrics> parse_metrics(std::string_view text);

using Admins = std::map<std::string, std::string>;  // host to URL
inline constexpr Duration kAdminTimeout = seconds(2);

[[nodiscard]] std::optional<HostMetrics> read_metrics(const std::string& admin_url, Duration timeout = kAdminTimeout);
// Only those that answered.
[[nodiscard]] std::map<std::string, HostMetrics> read_metrics_of_all(const Admins& admins,
                                                                     Duration timeout = kAdminTimeout);
// Bodies of PATH by host; only those that answered 200.
[[nodiscard]] std::map<std::string, std::string> read_of_all(const Admins& admins, const std::string& path,
                                                             Duration timeout = kAdminTimeout);

}  // namespace tandem::app
