// A fleet on one machine, to watch a reshard happen and to measure it: three real relays, a map server, and some
// hundred pairings that follow the client rules of 2-sharding 2.8. Loopback only; everything lives in a temporary
// folder.
#pragma once

#include <string>

namespace tandem::app {

struct FleetOptions {
  std::string tandemd;  // path of the daemon
  int pairings = 300;
  double poll_seconds = 10, drain_delay_seconds = 20, eviction_rate = 10;
  double rendezvous_seconds = 2;  // timeouts.rendezvous; 0: off
  double down_seconds = 3;        // how long the killed relay stays away
  std::string only;               // "add", "drain" or "kill"; empty: all three, in this order
  bool json = false;              // one object a phase on stdout
  bool keep = false;              // leave the temporary folder, with the relays' logs
};

// Returns 0 where every pairing was back at the end of each phase and no frame of a live splice was lost, else 1.
[[nodiscard]] int run_fleet(const FleetOptions& options);

}  // namespace tandem::app
