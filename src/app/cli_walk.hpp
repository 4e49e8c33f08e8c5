// What a command line shows of itself, as plain lists: shared by the man page and the completions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace tandem::app {

struct ShownOption {
  std::vector<std::string> names;  // "-h", "--help"
  std::string value;               // "FILE"; empty for a flag
  std::string description;
  bool required = false;
};

struct ShownArgument {
  std::string name;
  std::string description;
  bool required = false, repeats = false;
  std::string value;  // "HOST"
};

struct ShownCommand {
  std::string path;  // "tandemctl map add"
  std::string name;  // "add"
  std::string description;
  std::vector<ShownOption> options;
  std::vector<ShownArgument> arguments;
  std::vector<ShownCommand> commands;
};

[[nodiscard]] ShownCommand shown(const CLI::App& app);
// Depth first, the program itself first.
void for_each_command(const ShownCommand& root, const std::function<void(const ShownCommand&)>& visit);

}  // namespace tandem::app
