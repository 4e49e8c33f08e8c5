// tandemctl as a whole: its commands, --help, --version, and how a usage error is told (3-operations 3.1).
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tandem::app {

// Parses, runs the chosen command, and returns the process's exit code: 0 ok, 1 the thing asked about is wrong, 2
// usage.
[[nodiscard]] int run_tandemctl(int argc, char** argv);

// The line that a failed parse deserves: what was wrong, the nearest command or option where one is near, and where
// help is. `app` has just refused its arguments and still holds what it could not place; `parser_says` is its own
// message.
[[nodiscard]] std::string usage_line(const CLI::App& app, const std::string& parser_says);

}  // namespace tandem::app
