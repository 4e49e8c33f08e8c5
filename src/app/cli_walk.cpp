#include "app/cli_walk.hpp"

#include <algorithm>

namespace tandem::app {
namespace {

void add_options(const CLI::App& app, ShownCommand& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->get_positional()) {
      out.arguments.push_back({option->get_name(true), option->get_description(), option->get_required(),
                               option->get_items_expected_max() > 1, option->get_type_name()});
      continue;
    }
    ShownOption o;
    for (const std::string& name : option->get_snames()) o.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) o.names.push_back("--" + name);
    if (option->get_items_expected_max() > 0)
      o.value = option->get_type_name().empty() ? "VALUE" : option->get_type_name();
    o.description = option->get_description();
    o.required = option->get_required();
    const bool known = std::any_of(out.options.begin(), out.options.end(),
                                   [&](const ShownOption& other) { return other.names == o.names; });
    if (!known) out.options.push_back(std::move(o));  // a group repeats --help
  }
}

ShownCommand walk(const CLI::App& app, const std::string& prefix) {
  ShownCommand out;
  out.name = app.get_name();
  out.path = prefix.empty() ? out.name : prefix + " " + out.name;
  out.description = app.get_description();
  add_options(app, out);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name().empty())
      add_options(*sub, out);  // a group of options, which is a nameless command to the library
    else if (!sub->get_group().empty())
      out.commands.push_back(walk(*sub, out.path));
  }
  return out;
}

}  // namespace

ShownCommand shown(const CLI::App& app) { return walk(app, ""); }

void for_each_command(const ShownCommand& root, const std::function<void(const ShownCommand&)>& visit) {
  visit(root);
  for (const ShownCommand& command : root.commands) for_each_command(command, visit);
}

}  // namespace tandem::app
