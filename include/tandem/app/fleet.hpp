// A fleet on one machine, to watch a reshard happen and to measure it: three real relays, a map server, and some
// hundred pairings that follow the client rules of 2-sharding 2.8. Loopback only; everything lives in a temporary
// folder.
#pragma once

#include <string>
#include <vector>

namespace tandem::app {

struct FleetOptions {
  std::string tandemd;  // path of the daemon
  int pairings = 300;
  double poll_seconds = 10, drain_delay_seconds = 20, eviction_rate = 10;
  double rendezvous_seconds = 2;                                   // timeouts.rendezvous; 0: off
  double down_seconds = 3;                                         // how long the killed relay stays away
  std::vector<std::string> scenarios = {"add", "remove", "kill"};  // in this order, on one fleet; "all": each once
  bool json = false;                                               // one object a phase on stdout
  bool keep = false;                                               // leave the temporary folder, with the relays' logs
};

// What may stand in `scenarios`, "all" left out.
[[nodiscard]] std::vector<std::string> fleet_scenario_names();

// Returns 0 where at the end of each phase every pairing was back, no frame of a live splice was lost, no relay had
// admitted a room that the map it held gave to another, and nothing else was found wrong; else 1.
[[nodiscard]] int run_fleet(const FleetOptions& options);

}  // namespace tandem::app
