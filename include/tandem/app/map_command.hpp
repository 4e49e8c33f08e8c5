// The commands of `tandemctl map`, each a function of its options; what they print, and how a failure becomes an exit
// code.
#pragma once

#include "tandem/app/map_publish.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tandem::app {

// Where results go: JSON objects to stdout, one a line; text for people to stdout, or to stderr beside JSON.
class MapOutput {
 public:
  explicit MapOutput(bool json) : json_(json) {}
  [[nodiscard]] bool json() const noexcept { return json_; }
  void result(const OrderedJson& object, const std::string& text) const;
  void say(const std::string& text) const;       // for people
  void progress(const std::string& text) const;  // one line on stderr, rewritten in place on a terminal
  int fail(const MapError& error) const;         // one line on stderr, and the object

 private:
  bool json_;
};

// What a command gets. `store` is there whenever a store was named.
struct MapCommand {
  MapOptions options;
  MapOutput out;
  std::optional<MapStore> store;

  [[nodiscard]] MapStore& need_store();  // error: usage
  [[nodiscard]] MapPublisher publisher();
};

// The options as parsed, before they are judged.
struct MapArguments {
  MapOptions options;
  std::vector<std::string> admins;  // HOST=URL
};
[[nodiscard]] int run_map_command(const MapArguments& arguments, const std::function<int(MapCommand&)>& command);

// True once SIGINT or SIGTERM came; from the first call on they no longer end the process by themselves.
[[nodiscard]] bool interrupted();
// One line from stdin; nothing at its end.
[[nodiscard]] bool ask(const std::string& question);

// ---- reading
int map_show(MapCommand& c, std::optional<std::uint64_t> version);
int map_check(MapCommand& c, const std::string& source, bool strict);
int map_diff(MapCommand& c, const std::vector<std::string>& from_to);
int map_history(MapCommand& c, std::size_t limit);
int map_owner(MapCommand& c, const std::string& room_or_url);
int map_status(MapCommand& c, bool watch);
int map_complete(MapCommand& c, const std::string& kind);  // "hosts" or "versions"

// ---- publishing
int map_init(MapCommand& c, const std::vector<std::string>& hosts, const std::optional<std::string>& upload);
int map_edit_with(MapCommand& c, const std::string& action, std::function<shard::Edited(const shard::ShardMap&)> edit);
int map_move(MapCommand& c, const std::string& range, const std::string& host, bool fresh);
int map_drain(MapCommand& c, const std::string& host, const std::optional<std::string>& into, Duration timeout);
int map_edit(MapCommand& c);
int map_publish(MapCommand& c, const std::optional<std::string>& file, bool again);
int map_rollback(MapCommand& c, std::optional<std::uint64_t> version);

// ---- serving
int map_serve(MapCommand& c, const std::string& listen, const std::string& certificate, const std::string& private_key);
int map_console(MapCommand& c, const std::string& listen);

// The options of every map command, for `map` and for `owner`.
void add_map_options(CLI::App& app, MapArguments& arguments);

}  // namespace tandem::app
