#include "tandem/app/daemon.hpp"

#include "app/cli_parse.hpp"
#include "tandem/app/checker.hpp"
#include "tandem/app/ctl.hpp"
#include "tandem/app/process.hpp"
#include "tandem/app/settings.hpp"
#include "tandem/config/load.hpp"
#include "tandem/log/log.hpp"

#include <exception>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

namespace tandem::app {
namespace {

int refuse(const std::string& line, int exit_code) {
  std::cerr << "tandemd: " << line << std::endl;
  return exit_code;
}

int serve(const std::string& file) {
  auto loaded = config::load(file);
  if (const auto* error = std::get_if<config::ConfigError>(&loaded)) return refuse(error->one_line(), kWrong);
  auto& config = std::get<config::Config>(loaded);
  log::Log log(log_options(config));
  try {
    return Process(std::move(config), log).run();
  } catch (const std::exception& fault) {  // bad_alloc and the like at start; nothing throws across the loop
    log.error(std::string("stopped by a fault: ") + fault.what());
    return kWrong;
  }
}

}  // namespace

int run_daemon(int argc, char** argv) {
  CLI::App app("A relay for paired devices: joins the sockets of a mac and a phone, and forwards what it cannot read.",
               "tandemd");
  add_version_flag(app);
  std::string file;
  bool check = false, online = false;
  app.add_option("--config", file, "The configuration file (JSON with // comments)")->type_name("FILE")->required();
  app.add_flag("--check", check,
               "Check configuration, certificate, hostname and state file, say what would be done, and exit 0 or 1");
  app.add_flag("--online", online, "With --check: fetch the shard map too")->needs("--check");

  const auto wrong = [](const std::string& line) { return refuse(line, kUsage); };
  if (const auto over = parse_arguments(app, argc, argv, wrong)) return *over;
  return check ? run_check(file, online, std::cout, std::cerr) : serve(file);
}

}  // namespace tandem::app
