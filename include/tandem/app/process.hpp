// One running relay: owns every part, gives each what it needs of the others, and carries it from boot to stop.
//
// Boot: certificate, admin listener (its /readyz says 503), state file, shard map, listeners; only then ready. A fault
// on the way is one line on the log and exit code 1; nothing is half up.
#pragma once

#include "tandem/config/config.hpp"

#include <memory>

namespace tandem::log {
class Log;
}

namespace tandem::app {

class Process {
 public:
  Process(config::Config config, log::Log& log);  // the log outlives the process
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Runs until told to stop. The exit code: 0 stopped as told, 1 could not start.
  [[nodiscard]] int run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::app
