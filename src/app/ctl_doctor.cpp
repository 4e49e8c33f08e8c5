// tandemctl doctor: do the certificate, the DNS name, the map entry, the clock and the machine agree with the
// configuration?
#include "tandem/app/admin_read.hpp"
#include "tandem/app/checker.hpp"
#include "tandem/app/ctl.hpp"
#include "tandem/app/doctor.hpp"
#include "tandem/config/load.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

struct DoctorOptions {
  std::string config;
  bool json = false;
};

std::string_view to_string(Health health) {
  return health == Health::good ? "ok" : health == Health::warning ? "warning" : "wrong";
}

void print(const Finding& f, bool as_json) {
  if (as_json) {
    const nlohmann::ordered_json line = {
        {"about", f.about}, {"result", to_string(f.health)}, {"text", f.text}, {"fix", f.fix}};
    std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
    return;
  }
  const char* mark = f.health == Health::good ? "[ ok ]  " : f.health == Health::warning ? "[warn]  " : "[FAIL]  ";
  std::cout << mark << f.about << std::string(f.about.size() < 13 ? 13 - f.about.size() : 1, ' ') << f.text << "\n";
  if (!f.fix.empty()) std::cout << std::string(21, ' ') << "-> " << f.fix << "\n";
  std::cout << std::flush;
}

// process_max_fds of the relay that runs, where one does.
std::optional<std::uint64_t> descriptor_limit_of_relay(const config::Config& c) {
  const auto got = admin_get(c.admin_listen.text(), "/metrics");
  const auto* answer = std::get_if<AdminAnswer>(&got);
  if (answer == nullptr || answer->status != 200) return std::nullopt;
  const std::size_t at = answer->body.find("\nprocess_max_fds ");
  if (at == std::string::npos) return std::nullopt;
  return static_cast<std::uint64_t>(std::strtod(answer->body.c_str() + at + 17, nullptr));
}

// What the configuration's own warnings say, but for what has an examination of its own.
Findings examine_config(const config::Config& c) {
  Findings out;
  std::string choices;
  for (const std::string& warning : config_warnings(c, facts_here(c))) {
    if (warning.starts_with("limits.sockets:") || warning.starts_with("state.path:")) continue;
    if (warning.starts_with("attest.required:")) {  // a choice that only an explicit false makes; told, and no fault
      choices = "; " + warning;
      continue;
    }
    out.push_back({Health::warning, "config", warning, "docs/configuration.md says what the key means"});
  }
  if (const auto fault = ca_fault(c))
    out.push_back({Health::wrong, "config", *fault, "correct the path, or set the key to null"});
  if (out.empty()) out.push_back({Health::good, "config", c.file + choices, ""});
  return out;
}

int doctor(const DoctorOptions& options) {
  const auto loaded = config::load(options.config);
  if (const auto* error = std::get_if<config::ConfigError>(&loaded)) return fail("doctor: " + error->one_line());
  const auto& c = std::get<config::Config>(loaded);
  const WallTime now = std::chrono::floor<seconds>(std::chrono::system_clock::now());

  std::size_t wrong = 0, warnings = 0;
  const auto tell = [&](const Findings& findings) {
    for (const Finding& f : findings) {
      print(f, options.json);
      wrong += f.health == Health::wrong ? 1 : 0;
      warnings += f.health == Health::warning ? 1 : 0;
    }
  };
  std::optional<WallTime> server_time;
  tell(examine_config(c));
  tell(examine_certificate(c, now));
  tell(examine_name(c));
  tell(examine_map(c, server_time));
  tell(examine_clock(now, server_time));
  tell(examine_state(c));
  tell(examine_relay(c));
  tell(examine_served(c));
  tell(examine_descriptors(c, descriptor_limit_of_relay(c)));
  tell(examine_kernel(c, "/proc"));
  if (!options.json) {
    std::cout << (wrong == 0 ? "\nnothing is wrong" : "\n" + std::to_string(wrong) + " wrong");
    if (warnings != 0) std::cout << ", " << warnings << (warnings == 1 ? " warning" : " warnings");
    std::cout << std::endl;
  }
  return wrong == 0 ? kOk : kWrong;
}

}  // namespace

void add_doctor(Ctl& ctl) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = ctl.app->add_subcommand(
      "doctor", "Check that certificate, DNS name, map entry, clock and machine agree; says how to fix what does not");
  command->add_option("--config", options->config, "The relay's configuration file")->type_name("FILE")->required();
  command->add_flag("--json", options->json, "Print one JSON object per finding");
  command->callback([&ctl, options] { ctl.run = [options] { return doctor(*options); }; });
}

}  // namespace tandem::app
