// What both programs do with their arguments before anything else: --help, --version, --generate, and a usage error in
// one line (3-operations 3.1).
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace tandem::app {

void add_version_flag(CLI::App& app);

// Parses. The exit code where that was all there is to do: what was asked for is printed, or the arguments were wrong,
// and `refuse` has told the line and chosen the code. Nothing where the program goes on.
[[nodiscard]] std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv,
                                                 const std::function<int(const std::string& line)>& refuse);

}  // namespace tandem::app
