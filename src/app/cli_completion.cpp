// The three shells find the command that the words so far have reached by the same walk: each word that names a command
// under the current one descends. What follows an option with a value, or a command's arguments, is completed as a
// file; but a HOST or a VERSION is completed by what the shard map's store knows.
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

// What the store is asked for a value of this kind; null for all others.
const char* asked_for(const std::string& value) {
  if (value == "HOST") return "hosts";
  return value == "VERSION" ? "versions" : nullptr;
}

// "'tandemctl map remove --into'" for each option whose value is asked for.
void for_each_asked(const ShownCommand& root,
                    const std::function<void(const std::string& pattern, const char* kind)>& visit) {
  for_each_command(root, [&](const ShownCommand& command) {
    for (const ShownOption& option : command.options) {
      if (const char* kind = asked_for(option.value)) visit(quoted(command.path + " " + option.names.back()), kind);
    }
  });
}

const char* asked_argument(const ShownCommand& command) {
  for (const ShownArgument& argument : command.arguments)
    if (const char* kind = asked_for(argument.value)) return kind;
  return nullptr;
}

std::string ask_store(const ShownCommand& root, const std::string& kind) {
  return root.name + " map complete " + kind + " 2>/dev/null";
}

}  // namespace

void write_bash_completion(const CLI::App& app, std::ostream& out) {
  const ShownCommand root = shown(app);
  out << "# bash completion for " << root.name << "\n_" << root.name << "() {\n"
      << "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=" << quoted(root.name)
      << " words= i\n"
      << "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$at ${COMP_WORDS[i]}\" in\n";
  write_walk(root, out);
  out << "    esac\n    [[ ${COMP_WORDS[i]} == --store ]] && local -x TANDEM_STORE=${COMP_WORDS[i+1]}\n"
      << "  done\n  COMPREPLY=()\n";
  for_each_asked(root, [&](const std::string& pattern, const char* kind) {
    out << "  if [[ \"$at $prev\" == " << pattern << " ]]; then\n    COMPREPLY=($(compgen -W \"$("
        << ask_store(root, kind) << ")\" -- \"$cur\"))\n    return\n  fi\n";
  });
  if (const std::string patterns = value_patterns(root); !patterns.empty()) {
    out << "  case \"$at $prev\" in\n    " << patterns << ") return ;;\n  esac\n";
  }
  out << "  case $at in\n";
  for_each_command(root, [&](const ShownCommand& command) {
    out << "    " << quoted(command.path) << ") words=" << quoted(words_of(command));
    if (const char* kind = asked_argument(command)) out << "\" $(" << ask_store(root, kind) << ")\"";
    out << " ;;\n";
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
      << "  local at=" << quoted(root.name) << " i\n  local -a commands options known\n"
      << "  for ((i = 2; i < CURRENT; i++)); do\n    case \"$at ${words[i]}\" in\n";
  write_walk(root, out);
  out << "    esac\n    [[ ${words[i]} == --store ]] && local -x TANDEM_STORE=${words[i+1]}\n  done\n";
  for_each_asked(root, [&](const std::string& pattern, const char* kind) {
    out << "  if [[ \"$at ${words[CURRENT-1]}\" == " << pattern << " ]]; then\n    known=(${(f)\"$("
        << ask_store(root, kind) << ")\"})\n    compadd -a known\n    return\n  fi\n";
  });
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
    out << ")\n";
    if (const char* kind = asked_argument(command)) {
      out << "      known=(${(f)\"$(" << ask_store(root, kind) << ")\"})\n";
    }
    out << "      ;;\n";
  });
  out << "  esac\n  (( ${#known} )) && compadd -a known\n  (( ${#commands} )) && _describe command commands\n"
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
    if (const char* kind = asked_argument(command)) {
      out << here << " -f -a " << fish_quoted("(" + ask_store(root, kind) + ")") << "\n";
    }
    for (const ShownOption& option : command.options) {
      out << here;
      for (const std::string& name : option.names) {
        out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      }
      out << (option.value.empty() ? "" : " -r");
      if (const char* kind = asked_for(option.value))
        out << " -f -a " << fish_quoted("(" + ask_store(root, kind) + ")");
      out << " -d " << fish_quoted(option.description) << "\n";
    }
  });
}

}  // namespace tandem::app
