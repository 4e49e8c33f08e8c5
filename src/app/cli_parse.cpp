#include "app/cli_parse.hpp"

#include "tandem/app/cli_generate.hpp"
#include "tandem/app/ctl.hpp"
#include "tandem/app/ctl_main.hpp"
#include "tandem/core/version.hpp"

#include <iostream>

#include <CLI/CLI.hpp>

namespace tandem::app {

void add_version_flag(CLI::App& app) {
  app.set_version_flag("--version", app.get_name() + " " + std::string(version()) + " (" + std::string(commit()) + ")");
}

std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv,
                                   const std::function<int(const std::string& line)>& refuse) {
  if (const auto generated = generate_if_asked(app, argc, argv)) return generated;
  if (argc <= 1) {
    std::cerr << app.help();
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();  // of the command that was reached
    return kOk;
  } catch (const CLI::CallForAllHelp&) {
    std::cout << app.help("", CLI::AppFormatMode::All);
    return kOk;
  } catch (const CLI::CallForVersion& called) {
    std::cout << called.what() << "\n";
    return kOk;
  } catch (const CLI::ParseError& refused) {
    return refuse(usage_line(app, refused.what()));
  }
  return std::nullopt;
}

}  // namespace tandem::app
