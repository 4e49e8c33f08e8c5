#include "tandem/app/map_command.hpp"

#include "tandem/net/http_fetch.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

namespace tandem::app {

namespace {

std::atomic<bool> stop_asked{false};  // lock-free, so that the handler may set it

std::string as_line(const OrderedJson& object) {
  return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Admins parse_admins(const std::vector<std::string>& given) {
  Admins admins;
  for (const std::string& text : given) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) throw usage_error("--admin", text, "is not HOST=URL");
    std::string url = text.substr(equals + 1);
    while (url.ends_with('/')) url.pop_back();
    if (const auto parsed = net::parse_fetch_url(url + "/metrics"); const auto* why = std::get_if<std::string>(&parsed))
      throw usage_error("--admin", text, "cannot be asked: " + *why);
    admins[text.substr(0, equals)] = url;
  }
  return admins;
}

}  // namespace

void MapOutput::result(const OrderedJson& object, const std::string& text) const {
  if (json_) {
    std::cout << as_line(object) << std::endl;
  } else {
    std::cout << text << std::flush;
  }
}

void MapOutput::say(const std::string& text) const { (json_ ? std::cerr : std::cout) << text << std::flush; }

void MapOutput::progress(const std::string& text) const {
  static std::string last;
  if (::isatty(STDERR_FILENO) == 1) {
    std::cerr << "\r\x1b[K" << text << std::flush;
  } else if (text != last) {
    std::cerr << text << std::endl;
  }
  last = text;
}

int MapOutput::fail(const MapError& error) const {
  std::string line = error.what();
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  // The code is part of the line, so that a person and a program can speak about the same thing.
  if (!line.starts_with(error.code()) && error.code() != "usage") line = error.code() + ": " + line;
  std::cerr << "tandemctl: " << line << std::endl;
  if (json_) std::cout << as_line(error.object()) << std::endl;
  return error.exit_code();
}

MapStore& MapCommand::need_store() {
  if (!store)
    throw MapError("usage", "--store: no store is named; give --store DIR or set TANDEM_STORE", {{"value", ""}},
                   kUsage);
  return *store;
}

MapPublisher MapCommand::publisher() {
  return {need_store(),
          options,
          {.preview =
               [this](const Published& plan, const std::string& note) {
                 out.say(preview_text(plan) + (note.empty() ? "" : "  " + note + "\n"));
               },
           .ask = [](MapVersion v) { return ask("Publish version " + std::to_string(v.value) + "? [y/N] "); },
           .report =
               [this](const Published& p) {
                 const std::string version = "version " + std::to_string(p.version.value);
                 std::string text;
                 if (p.published) {
                   text = "published " + version + (p.phase ? " (phase " + std::to_string(*p.phase) + ")" : "") +
                          (p.uploaded ? ", uploaded" : "") + ": " + p.path + "\n";
                 } else if (p.moves.empty() && p.action != "init") {
                   text = "nothing to do: " + version + " stays\n";
                 } else {
                   text = "dry run: nothing is written\n";
                 }
                 for (const MapWarning& w : p.warnings) text += "warning: " + w.code + ": " + w.message + "\n";
                 out.result(to_json(p), text);
               },
           .progress =
               [this](const std::string& line) {
                 (void)interrupted();  // from here on an interrupt is told, not suffered
                 out.progress(line);
               },
           .interrupted = [] { return interrupted(); }}};
}

int run_map_command(const MapArguments& arguments, const std::function<int(MapCommand&)>& command) {
  const MapOutput out(arguments.options.json);
  try {
    MapCommand c{arguments.options, out, {}};
    c.options.admins = parse_admins(arguments.admins);
    if (c.options.store.empty())
      if (const char* named = std::getenv("TANDEM_STORE")) c.options.store = named;
    if (!c.options.store.empty()) c.store.emplace(c.options.store);
    return command(c);
  } catch (const MapError& error) {
    return out.fail(error);
  }
}

bool interrupted() {
  static const bool installed = [] {
    for (const int s : {SIGINT, SIGTERM}) std::signal(s, [](int) { stop_asked = true; });
    return true;
  }();
  return installed && stop_asked;
}

bool ask(const std::string& question) {
  std::cerr << question << std::flush;
  std::string answer;
  if (!std::getline(std::cin, answer)) return false;
  if (answer.ends_with('\r')) answer.pop_back();
  return answer == "y" || answer == "yes";
}

}  // namespace tandem::app
