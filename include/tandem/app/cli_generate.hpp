// Man pages and shell completions, written by walking what a program's command line defines: a command exists in one
// place, and its --help, its page and its completions cannot disagree. Commands and options of an empty group stay
// hidden.
#pragma once

#include <iosfwd>
#include <optional>
#include <string_view>

namespace CLI {
class App;
}

namespace tandem::app {

// what: man, bash, zsh or fish. The process's exit code: 2 for another word, with the valid ones on `err`.
[[nodiscard]] int generate(const CLI::App& app, std::string_view what, std::ostream& out, std::ostream& err);

// For main, before parsing: `PROGRAM --generate WHAT` (not shown by --help) writes to stdout and gives the exit code;
// nothing where the arguments are others.
[[nodiscard]] std::optional<int> generate_if_asked(const CLI::App& app, int argc, char** argv);

void write_man_page(const CLI::App& app, std::ostream& out);
void write_bash_completion(const CLI::App& app, std::ostream& out);
void write_zsh_completion(const CLI::App& app, std::ostream& out);
void write_fish_completion(const CLI::App& app, std::ostream& out);

}  // namespace tandem::app
