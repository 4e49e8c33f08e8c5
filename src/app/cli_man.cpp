#include "app/cli_walk.hpp"
#include "tandem/app/cli_generate.hpp"
#include "tandem/core/version.hpp"

#include <algorithm>
#include <iostream>
#include <ostream>

namespace tandem::app {
namespace {

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::string synopsis(const ShownCommand& command) {
  std::string out = "\\fB" + roff(command.path) + "\\fR";
  for (const ShownOption& o : command.options) {
    if (o.required) out += " \\fB" + roff(o.names.back()) + "\\fR " + "\\fI" + roff(o.value) + "\\fR";
  }
  const bool optional =
      std::any_of(command.options.begin(), command.options.end(), [](const ShownOption& o) { return !o.required; });
  if (optional) out += " [\\fIOPTIONS\\fR]";
  if (!command.commands.empty()) out += " \\fICOMMAND\\fR";
  for (const ShownArgument& a : command.arguments) {
    const std::string name = "\\fI" + roff(upper(a.name)) + "\\fR" + (a.repeats ? "..." : "");
    out += a.required ? " " + name : " [" + name + "]";
  }
  return out;
}

void write_lists(const ShownCommand& command, std::ostream& out) {
  for (const ShownArgument& a : command.arguments) {
    out << ".TP\n\\fI" << roff(upper(a.name)) << "\\fR\n" << roff(a.description) << "\n";
  }
  for (const ShownOption& o : command.options) {
    out << ".TP\n";
    for (std::size_t i = 0; i < o.names.size(); ++i)
      out << (i == 0 ? "" : ", ") << "\\fB" << roff(o.names[i]) << "\\fR";
    if (!o.value.empty()) out << " \\fI" << roff(o.value) << "\\fR";
    out << "\n" << roff(o.description) << "\n";
  }
}

}  // namespace

void write_man_page(const CLI::App& app, std::ostream& out) {
  const ShownCommand root = shown(app);
  std::string summary = root.description;
  while (summary.ends_with('.')) summary.pop_back();
  // No date: two builds of one commit give the same bytes.
  out << ".TH " << upper(root.name) << " 1 \"\" \"Tandem " << version() << "\" \"Tandem\"\n";
  out << ".SH NAME\n" << roff(root.name) << " \\- " << roff(summary) << "\n";
  out << ".SH SYNOPSIS\n" << synopsis(root) << "\n";
  out << ".SH DESCRIPTION\n" << roff(root.description) << "\n";
  out << ".SH OPTIONS\n";
  write_lists(root, out);
  if (!root.commands.empty()) {
    out << ".SH COMMANDS\n";
    for (const ShownCommand& command : root.commands) {
      for_each_command(command, [&](const ShownCommand& c) {
        out << ".SS " << roff(c.path) << "\n" << synopsis(c) << "\n.PP\n" << roff(c.description) << "\n";
        write_lists(c, out);
      });
    }
  }
  out << ".SH EXIT STATUS\n.TP\n0\nIt is so, or it is done.\n.TP\n1\nWhat was asked about is wrong, or could not be "
         "done; one line on "
         "standard error says what, where and what to do.\n.TP\n2\nThe command line is wrong.\n";
  out << ".SH FILES\n.TP\n/etc/tandem/relay.jsonc\nThe configuration of the packaged "
         "service.\n.TP\n/var/lib/tandem/state.db\nIts soft "
         "state.\n";
  out << ".SH SEE ALSO\n\\fBtandemd\\fR(1), \\fBtandemctl\\fR(1)\n";
}

int generate(const CLI::App& app, std::string_view what, std::ostream& out, std::ostream& err) {
  if (what == "man")
    write_man_page(app, out);
  else if (what == "bash")
    write_bash_completion(app, out);
  else if (what == "zsh")
    write_zsh_completion(app, out);
  else if (what == "fish")
    write_fish_completion(app, out);
  else {
    err << app.get_name() << ": --generate: expected man, bash, zsh or fish, found '" << what << "'\n";
    return 2;
  }
  return 0;
}

std::optional<int> generate_if_asked(const CLI::App& app, int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--generate") return std::nullopt;
  return generate(app, argv[2], std::cout, std::cerr);
}

}  // namespace tandem::app
