// What one phase of a fleet run came to, as lines for people or one JSON object.
#pragma once

#include "app/fleet_pairing.hpp"
#include "tandem/app/fleet_audit.hpp"

#include <string>
#include <vector>

namespace tandem::app {

struct FleetDrain {
  std::string host;
  std::size_t rooms = 0;
  Duration predicted{}, took{};  // from that host's adoption
};

struct FleetPhase {
  std::string title, trouble;
  Duration took{};  // from the change until everything was well again
  std::size_t pairings = 0, back = 0;
  std::vector<FleetDrain> drains;
  FleetRecord record;
  FleetFindings findings;
};

void print_phase(const FleetPhase& phase, bool json);

[[nodiscard]] std::string in_seconds(Duration d);                                  // "12.34 s"
[[nodiscard]] Duration percentile(std::vector<Duration> values, double fraction);  // zero where there are none
[[nodiscard]] std::string last_line(const std::string& path);                      // of a log file

}  // namespace tandem::app
