// tandemctl floor: shows the newest map version that a relay has seen, and forgets it where a mistyped one must be got
// over.
#include "tandem/app/ctl.hpp"
#include "tandem/config/load.hpp"
#include "tandem/state/store.hpp"

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {

namespace {

struct FloorOptions {
  std::string config;
  bool reset = false, json = false;
};

constexpr char kAtNextStart[] = "restart the relay; this takes effect at its next start";

void show(const FloorOptions& options, const std::string& path, std::optional<MapVersion> floor, bool reset) {
  if (options.json) {
    nlohmann::json out{{"ok", true}, {"state", path}, {"floor", nullptr}, {"reset", reset}};
    if (floor) out["floor"] = floor->value;
    std::cout << out.dump() << "\n";
  } else if (reset) {
    std::cout << "floor " << (floor ? std::to_string(floor->value) : std::string("none"))
              << " cleared: " << kAtNextStart << "\n";
  } else {
    std::cout << "floor " << (floor ? std::to_string(floor->value) : std::string("none")) << "\n";
  }
}

int run_floor(const FloorOptions& options) {
  const auto loaded = config::load(options.config);
  if (const auto* error = std::get_if<config::ConfigError>(&loaded)) return fail("floor: " + error->one_line());
  const auto& path = std::get<config::Config>(loaded).state_path;
  if (!path) return fail("floor: " + options.config + ": state.path is null, so no floor outlives a restart");
  // Looking must not create a file, nor one that the relay could not open later.
  if (::access(path->c_str(), F_OK) != 0) {
    show(options, *path, std::nullopt, options.reset);
    return kOk;
  }
  auto store = state::Store::open(*path);
  if (!store) return fail("floor: " + store.error().message);
  const auto floor = store->floor();
  if (!floor) return fail("floor: " + floor.error().message);
  if (options.reset) {
    if (const auto fault = store->clear_floor()) return fail("floor: " + fault->message);
  }
  show(options, *path, *floor, options.reset);
  return kOk;
}

}  // namespace

void add_floor(Ctl& ctl) {
  auto options = std::make_shared<FloorOptions>();
  CLI::App* command = ctl.app->add_subcommand("floor", "Show or reset the newest map version that a relay has seen");
  command->add_option("--config", options->config, "The relay's configuration file")->required()->type_name("FILE");
  command->add_flag("--reset", options->reset, "Forget it: the relay's next start takes any valid map");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([&ctl, options] { ctl.run = [options] { return run_floor(*options); }; });
}

}  // namespace tandem::app
