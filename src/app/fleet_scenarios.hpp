// What is done to a fleet, each by itself or one after another on the same fleet.
#pragma once

#include "app/fleet_ground.hpp"

#include <span>
#include <string_view>

namespace tandem::app {

struct FleetScenario {
  std::string_view name;
  bool (*run)(FleetGround&);  // false: something was wrong, and has been said
};

[[nodiscard]] std::span<const FleetScenario> fleet_scenarios();  // in the order in which "all" runs them

}  // namespace tandem::app
