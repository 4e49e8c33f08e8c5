// Reads what a relay's log says of its admissions, and holds each against the map that this relay held then. Notes when
// it evicted rooms: a busy machine shows the ends of sockets to their clients later than they were.
//
// Log lines stand in the order in which the loop did things, so that the last "map adopted" above an "admitted" names
// the map it was admitted by. A relay that starts holds none; the versions it adopts never fall, not over a restart
// either.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/shard/map.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::app {

using FleetMaps = std::map<std::uint64_t, shard::ShardMap>;  // every version that was ever published
using FleetRooms = std::map<std::string, Bucket>;            // by the tag that logs name a room by

struct FleetFindings {
  std::uint64_t admissions = 0;
  std::map<std::string, std::map<std::string, std::chrono::milliseconds>> evictions;  // by host, by room: time of day
  std::vector<std::string> faults;
};

class FleetAudit {
 public:
  FleetAudit(std::string hostname, std::string log_path);  // a log in JSON, appended to over restarts

  // The whole lines that came since the last call.
  void read_on(const FleetMaps& maps, const FleetRooms& rooms, FleetFindings& findings);

  void take(std::string_view line, const FleetMaps& maps, const FleetRooms& rooms, FleetFindings& findings);

 private:
  std::string hostname_, log_path_;
  std::streamoff read_to_ = 0;
  const shard::ShardMap* held_ = nullptr;  // into the maps that were given
  std::uint64_t newest_ = 0;
};

// The most of these times that lie in any one second, wherever it begins.
[[nodiscard]] std::size_t most_in_a_second(std::vector<std::chrono::nanoseconds> times);

}  // namespace tandem::app
