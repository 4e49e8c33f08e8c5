// tandem_fleet: three relays and some hundred pairings on loopback, and a reshard to watch. For developers; `./dev
// fleet`.
#include "tandem/app/fleet.hpp"

#include <csignal>
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  tandem::app::FleetOptions options;
  std::error_code unknown;
  std::string bin = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path().string();

  CLI::App app("Runs three relays and simulated pairings on loopback, reshards, and measures.", "tandem_fleet");
  app.add_option("--bin", bin, "Folder of the tandemd to run; default: this program's own")->type_name("DIR");
  app.add_option("--pairings", options.pairings, "How many")->check(CLI::Range(1, 2000))->capture_default_str();
  app.add_option("--poll", options.poll_seconds, "shard_map.poll_interval, in seconds")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--drain-delay", options.drain_delay_seconds, "shard_map.drain_delay, in seconds")
      ->check(CLI::Range(0.2, 600.0))
      ->capture_default_str();
  app.add_option("--rate", options.eviction_rate, "shard_map.eviction_rate, rooms per second")
      ->check(CLI::Range(0.1, 10000.0))
      ->capture_default_str();
  app.add_option("--rendezvous", options.rendezvous_seconds, "timeouts.rendezvous, in seconds; 0 is off")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  app.add_option("--down", options.down_seconds, "How long the killed relay stays away, in seconds")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  auto names = tandem::app::fleet_scenario_names();
  names.emplace_back("all");
  app.add_option("--scenario", options.scenarios, "What happens to the fleet (repeatable, or a list)")
      ->delimiter(',')
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_flag("--json", options.json, "One JSON object a phase on stdout");
  app.add_flag("--keep", options.keep, "Leave the temporary folder with the relays' logs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& said) {
    return app.exit(said) == 0 ? 0 : 2;
  }
  options.tandemd = (std::filesystem::path(bin) / "tandemd").string();
  try {
    return tandem::app::run_fleet(options);
  } catch (const std::exception& fault) {
    std::cerr << "tandem_fleet: " << fault.what() << std::endl;
    return 1;
  }
}
