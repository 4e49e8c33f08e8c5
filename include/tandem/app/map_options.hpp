// What every `tandemctl map` command is told (2b-map-tool, the table of options).
#pragma once

#include "tandem/core/time.hpp"

#include <map>
#include <string>

namespace tandem::app {

struct MapOptions {
  std::string store;  // empty: none named
  bool yes = false, dry_run = false, json = false, two_phase = false;
  std::string message;
  std::string by;  // empty: user@machine
  Duration lock_timeout = seconds(10);
  Duration upload_timeout = seconds(60);
  std::map<std::string, std::string> admins;  // host to the URL of its admin endpoint, without a final slash
  // What the hosts are configured with.
  Duration drain_delay = seconds(20), poll_interval = seconds(10);
  double eviction_rate = 10;
};

[[nodiscard]] std::string user_at_machine();

}  // namespace tandem::app
