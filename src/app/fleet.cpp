#include "tandem/app/fleet.hpp"

#include "app/fleet_ground.hpp"
#include "app/fleet_scenarios.hpp"

#include <algorithm>
#include <iostream>

namespace tandem::app {
namespace {

std::vector<FleetScenario> chosen(const std::vector<std::string>& names) {
  const auto all = fleet_scenarios();
  std::vector<FleetScenario> out;
  for (const std::string& name : names)
    std::copy_if(all.begin(), all.end(), std::back_inserter(out),
                 [&](const FleetScenario& s) { return name == "all" || name == s.name; });
  return out;
}

}  // namespace

std::vector<std::string> fleet_scenario_names() {
  std::vector<std::string> names;
  for (const FleetScenario& scenario : fleet_scenarios()) names.emplace_back(scenario.name);
  return names;
}

int run_fleet(const FleetOptions& options) {
  const auto scenarios = chosen(options.scenarios);
  const bool adds = std::any_of(scenarios.begin(), scenarios.end(), [](const auto& s) { return s.name == "add"; });
  FleetGround ground(options);
  ground.start_relays(adds ? 2 : 3);
  ground.start_pairings();
  std::vector<std::string_view> wrong;
  for (const FleetScenario& scenario : scenarios)
    if (!scenario.run(ground)) wrong.push_back(scenario.name);
  ground.stop();
  std::cerr << scenarios.size() << " scenarios, " << wrong.size() << " of them wrong";
  for (const std::string_view name : wrong) std::cerr << " " << name;
  std::cerr << std::endl;
  return wrong.empty() ? 0 : 1;
}

}  // namespace tandem::app
