// The three shells find the command that the words so far have reached by the same walk: each word that names a command
// under the current one descends. What follows an option with a value, or a command's arguments, is completed as a
// file.
#include "app/cli_walk.hpp"
#include "tandem/app/cli_generate.hpp"

#include <ostream>

namespace tandem::app {
namespace {

// For between single quotes of bash and zsh.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string words_of(const ShownCommand& command) {
  std::string out;
  for (const ShownCommand& sub : command.commands) out += (out.empty() ? "" : " ") + sub.name;
  for (const ShownOption& option : command.options) out += (out.empty() ? "" : " ") + option.names.back();
  return out;
}

// "'tandemctl map') at='tandemctl map' ;;" for each command.
void write_walk(const ShownCommand& root, std::ostream& out) {
  for_each_command(root, [&](const ShownCommand& command) {
    if (&command != &root) out << "      " << quoted(command.path) << ") at=" << quoted(command.path) << " ;;\n";
  });
}

// A case pattern of every option that takes a value, with its command before it; empty where there is none.
std::string value_patterns(const ShownCommand& root) {
  std::string out;
  for_each_command(root, [&](const ShownCommand& command) {
    for (const ShownOption& option : command.options) {
      if (option.value.empty()) continue;
      for (const std::string& name : option.names) out += (out.empty() ? "" : "|") + quoted(command.path + " " + name);
    }
  });
  return out;
}

}  // namespace

void write_bash_completion(const CLI::App& app, std::ostream& out) {
  const ShownCommand root = shown(app);
  out << "# bash completion for " << root.name << "\n_" << root.name << "() {\n"
      << "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=" << quoted(root.name)
      << " words= i\n"
      << "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$at ${COMP_WORDS[i]}\" in\n";
  write_walk(root, out);
  out << "    esac\n  done\n  COMPREPLY=()\n";
  if (const std::string patterns = value_patterns(root); !patterns.empty()) {
    out << "  case \"$at $prev\" in\n    " << patterns << ") return ;;\n  esac\n";
  }
  out << "  case $at in\n";
  for_each_command(root, [&](const ShownCommand& command) {
    out << "    " << quoted(command.path) << ") words=" << quoted(words_of(command)) << " ;;\n";
  });
  out << "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
      << "complete -o default -F _" << root.name << " " << root.name << "\n";
}

void write_zsh_completion(const CLI::App& app, std::ostream& out) {
  const ShownCommand root = shown(app);
  const auto entry = [](const std::string& name, const std::string& description) {
    std::string escaped;
    for (const char c : name) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
    return quoted(escaped + ":" + description);
  };
  out << "#compdef " << root.name << "\n_" << root.name << "() {\n"
      << "  local at=" << quoted(root.name) << " i\n  local -a commands options\n"
      << "  for ((i = 2; i < CURRENT; i++)); do\n    case \"$at ${words[i]}\" in\n";
  write_walk(root, out);
  out << "    esac\n  done\n";
  if (const std::string patterns = value_patterns(root); !patterns.empty()) {
    out << "  case \"$at ${words[CURRENT-1]}\" in\n    " << patterns << ") _files; return ;;\n  esac\n";
  }
  out << "  case $at in\n";
  for_each_command(root, [&](const ShownCommand& command) {
    out << "    " << quoted(command.path) << ")\n      commands=(";
    for (const ShownCommand& sub : command.commands) out << "\n        " << entry(sub.name, sub.description);
    out << ")\n      options=(";
    for (const ShownOption& option : command.options)
      out << "\n        " << entry(option.names.back(), option.description);
    out << ") ;;\n";
  });
  out << "  esac\n  (( ${#commands} )) && _describe command commands\n"
      << "  [[ $PREFIX == -* ]] && _describe option options\n"
      << "  (( ${#commands} )) || [[ $PREFIX == -* ]] || _files\n}\n_" << root.name << " \"$@\"\n";
}

void write_fish_completion(const CLI::App& app, std::ostream& out) {
  const ShownCommand root = shown(app);
  const std::string reached = "__" + root.name + "_at";
  out << "# fish completion for " << root.name << "\nfunction " << reached << "\n"
      << "  set -l at " << fish_quoted(root.name)
      << "\n  for word in (commandline -opc)[2..-1]\n    switch \"$at $word\"\n";
  for_each_command(root, [&](const ShownCommand& command) {
    if (&command != &root)
      out << "      case " << fish_quoted(command.path) << "\n        set at " << fish_quoted(command.path) << "\n";
  });
  out << "    end\n  end\n  test \"$at\" = \"$argv[1]\"\nend\n";
  for_each_command(root, [&](const ShownCommand& command) {
    const std::string here =
        "complete -c " + root.name + " -n " + fish_quoted(reached + " " + fish_quoted(command.path));
    for (const ShownCommand& sub : command.commands) {
      out << here << " -f -a " << fish_quoted(sub.name) << " -d " << fish_quoted(sub.description) << "\n";
    }
    for (const ShownOption& option : command.options) {
      out << here;
      for (const std::string& name : option.names) {
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      }
      out << (option.value.empty() ? "" : " -r") << " -d " << fish_quoted(option.description) << "\n";
    }
  });
}

}  // namespace tandem::app
