// What /status, /explain and the page are made of, and the first two as JSON with the names of 3-operations 3.4 and 2b.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/relay/relay.hpp"
#include "tandem/shard/map.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::admin {

// The newest fault of fetching the map, and its streak.
struct FetchFault {
  std::string cause;        // "parse"; "older" for a map below the floor at boot
  std::string kind, value;  // of a refused map, else empty
  std::string detail;
  std::uint32_t polls = 0;
  Duration lasted{};
};

struct Status {
  std::string hostname;
  Duration uptime{};
  WallTime now{};
  std::optional<std::string> not_ready;  // why; nothing: ready
  relay::Snapshot relay;
  std::uint64_t handshaking = 0;               // connections without a WebSocket yet
  Duration map_age{};                          // since the last successful poll
  std::shared_ptr<const shard::ShardMap> map;  // the one in force; null in direct mode and before the first
  std::optional<FetchFault> fetch_failing;     // the last poll failed
  std::optional<FetchFault> fetch_recovered;   // the newest fault of the newest streak that is over
  double bytes_per_second = 0;
  std::vector<double> last_hour;  // bytes per second of each minute, oldest first
  std::uint64_t drain_began_with = 0;
  std::optional<WallTime> certificate_expiry;
};

[[nodiscard]] std::string status_json(const Status& status);
[[nodiscard]] std::string explain_json(const relay::Explanation& explanation, const Status& status);

}  // namespace tandem::admin
