// Turns what the rooms report into the log lines of 3-operations 3.6, at the levels given there. Holds no state but the
// log and the version of the map that was ignored last.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/log/log.hpp"

#include <optional>

namespace tandem::log {

class EventLog final : public Observer {
 public:
  explicit EventLog(Log& log) : log_(log) {}  // outlives the observer
  void observe(const Observed& what) override;

 private:
  Log& log_;
  std::optional<MapVersion> ignored_;
};

}  // namespace tandem::log
