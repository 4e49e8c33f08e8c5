#include "tandem/app/ctl.hpp"

#include "app/cli_parse.hpp"
#include "tandem/app/ctl_main.hpp"
#include "tandem/core/authority.hpp"
#include "tandem/core/json.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

bool json_wanted = false;  // set once, before any command runs

// The command that the arguments had reached when parsing stopped.
const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  for (auto chosen = at->get_subcommands(); !chosen.empty(); chosen = at->get_subcommands()) at = chosen.front();
  return *at;
}

std::string full_name(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* up = app.get_parent(); up != nullptr; up = up->get_parent()) name = up->get_name() + " " + name;
  return name;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!sub->get_group().empty() && !sub->get_name().empty())
      names.push_back(sub->get_name());  // option groups have none
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent())
    for (const CLI::Option* option : at->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Whether the command has the option, in a group of its own or not: it was then given too early.
bool has_option(const CLI::App& command, const std::string& option) {
  if (command.get_option_no_throw(option) != nullptr) return true;
  const auto groups = command.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); });
  return std::any_of(groups.begin(), groups.end(), [&](const CLI::App* group) { return has_option(*group, option); });
}

std::string did_you_mean(const std::string& near) { return near.empty() ? "" : "; did you mean '" + near + "'?"; }

// What was given where a usage error is: for programs, which do not read the line. Nothing where no one argument is
// wrong.
std::optional<std::string> usage_value(const CLI::App& app, const std::string& line) {
  for (const std::string& stray : app.remaining(true))
    return stray.starts_with('-') ? stray.substr(0, stray.find('=')) : stray;
  for (const CLI::App* at = &deepest(app); at != nullptr; at = at->get_parent())
    for (const CLI::Option* option : at->get_options()) {
      const std::string& name = option->get_name();
      const bool named = line.starts_with(name + ":") || line.starts_with(name + " ") ||
                         line.starts_with("Could not convert: " + name + " = ");
      if (named) return option->results().empty() ? std::string{} : option->results().back();
    }
  return std::nullopt;
}

int tell(const std::string& message, int exit_code, const std::optional<std::string>& value) {
  std::cerr << "tandemctl: " << one_line(message) << std::endl;
  if (json_wanted) {
    nlohmann::ordered_json object = {
        {"ok", false}, {"error", exit_code == kUsage ? "usage" : "failed"}, {"message", message}};
    if (value) object["value"] = *value;
    std::cout << object.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return exit_code;
}

void add_commands(Ctl& ctl) {
  add_map(ctl);
  add_status(ctl);
  add_owner(ctl);
  add_explain(ctl);
  add_floor(ctl);
  add_doctor(ctl);
  add_probe(ctl);
  add_bench(ctl);
  add_pair(ctl);
  add_dev_cert(ctl);
}

}  // namespace

std::string usage_line(const CLI::App& app, const std::string& parser_says) {
  const CLI::App& at = deepest(app);
  const std::string help = "; see '" + full_name(at) + " --help'";
  for (const std::string& stray : app.remaining(true)) {
    if (stray.size() > 1 && stray.starts_with('-')) {
      const std::string bare = stray.substr(0, stray.find('='));
      if (has_option(at, bare)) return "option '" + bare + "' stands behind its command" + help;
      return "unknown option '" + bare + "'" + did_you_mean(nearest(bare, option_names(at))) + help;
    }
    if (!command_names(at).empty())
      return "unknown command '" + stray + "'" + did_you_mean(nearest(stray, command_names(at))) + help;
    return "unexpected argument '" + stray + "'" + help;
  }
  return one_line(parser_says) + help;
}

int fail(const std::string& message, int exit_code) { return tell(message, exit_code, std::nullopt); }

int run_tandemctl(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `tandemctl ... | head` is an error of writing, not a death
  json_wanted = std::any_of(argv, argv + argc, [](const char* a) { return std::string_view(a) == "--json"; });

  CLI::App app("Operates a Tandem relay: its map, its state, and how it does.", "tandemctl");
  add_version_flag(app);
  app.require_subcommand(1);
  Ctl ctl;
  ctl.app = &app;
  add_commands(ctl);

  const auto wrong = [&app](const std::string& line) { return tell(line, kUsage, usage_value(app, line)); };
  if (const auto over = parse_arguments(app, argc, argv, wrong)) return *over;
  try {
    return ctl.run ? ctl.run() : fail("this command does nothing yet", kWrong);
  } catch (const std::exception& fault) {
    return fail(fault.what(), kWrong);
  }
}

}  // namespace tandem::app
