// tandemctl map: the command line (2b-map-tool), from which --help, man pages and completions are made.
#include "tandem/app/ctl.hpp"
#include "tandem/app/map_command.hpp"
#include "tandem/config/units.hpp"

#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>

namespace tandem::app {

namespace {

CLI::Option* add_duration(CLI::App& app, const std::string& name, Duration& value, const std::string& text,
                          bool zero = true) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, zero](const std::string& given) {
            const auto parsed = config::parse_duration(given);
            if (!parsed || (!zero && *parsed == Duration{0}))
              throw CLI::ValidationError(
                  name, given + " is not a duration" + (zero ? "" : " above zero") + " such as 500ms, 10s or 2m");
            value = *parsed;
          },
          text + " (default " + config::format_duration(value) + ")")
      ->type_name("DURATION")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// Everything the subcommands are given, alive until the chosen one has run.
struct Given {
  MapArguments common;
  std::vector<std::string> hosts, from_to;
  std::string host, range, source, file, room, listen, certificate, private_key;
  std::optional<std::string> into, upload;
  std::optional<std::uint64_t> version;
  shard::AddOptions add;
  std::size_t limit = SIZE_MAX;
  Duration timeout = std::chrono::minutes(10);
  bool strict = false, fresh = false, again = false, watch = false;
};

class Commands {
 public:
  Commands(Ctl& ctl, CLI::App& map) : ctl_(ctl), map_(map), given_(std::make_shared<Given>()) {}

  [[nodiscard]] Given& given() { return *given_; }

  CLI::App* add(const std::string& name, const std::string& text, std::function<int(MapCommand&, Given&)> run) {
    CLI::App* command = map_.add_subcommand(name, text)->fallthrough();
    command->callback([&ctl = ctl_, given = given_, run = std::move(run)] {
      ctl.run = [given, run] { return run_map_command(given->common, [&](MapCommand& c) { return run(c, *given); }); };
    });
    return command;
  }

 private:
  Ctl& ctl_;
  CLI::App& map_;
  std::shared_ptr<Given> given_;
};

void add_reading(Commands& all) {
  Given& g = all.given();
  CLI::App* show =
      all.add("show", "The current map, or an old one", [](MapCommand& c, Given& a) { return map_show(c, a.version); });
  show->add_option("--version", g.version, "An old version instead of the current one")->type_name("VERSION");

  CLI::App* check = all.add("check", "Validate a map: a file, a URL, stdin, or the store's",
                            [](MapCommand& c, Given& a) { return map_check(c, a.source, a.strict); });
  check->add_option("source", g.source, "What to check; default the store's map")->type_name("FILE|URL|-");
  check->add_flag("--strict", g.strict, "Warnings make exit status 1");

  CLI::App* diff = all.add("diff", "Which buckets differ between two maps",
                           [](MapCommand& c, Given& a) { return map_diff(c, a.from_to); });
  diff->add_option("maps", g.from_to, "Version numbers, files or URLs; FROM defaults to the current map")
      ->type_name("[FROM] TO")
      ->required()
      ->expected(1, 2);

  CLI::App* history = all.add("history", "Who published what, newest first",
                              [](MapCommand& c, Given& a) { return map_history(c, a.limit); });
  history->add_option("--limit", g.limit, "At most so many")->type_name("N");

  CLI::App* owner = all.add("owner", "Whose is a room: its bucket, host and tag",
                            [](MapCommand& c, Given& a) { return map_owner(c, a.room); });
  owner->add_option("room", g.room, "A room name (64 hex digits) or a pairing URL")
      ->type_name("ROOM|PAIRING-URL")
      ->required();

  CLI::App* status = all.add("status", "Desired beside observed, for every host given by --admin",
                             [](MapCommand& c, Given& a) { return map_status(c, a.watch); });
  status->add_flag("--watch", g.watch, "Again every two seconds until interrupted");
}

// For the shells' completions: what the store knows, a word a line.
void add_completing(Commands& all) {
  Given& g = all.given();
  CLI::App* complete = all.add("complete", "Hosts or versions of the store, for completions",
                               [](MapCommand& c, Given& a) { return map_complete(c, a.source); });
  complete->add_option("kind", g.source)->required()->check(CLI::IsMember({"hosts", "versions"}));
  complete->group("");
}

void add_editing(Commands& all) {
  Given& g = all.given();
  CLI::App* init = all.add("init", "Make version 1: equal arcs in the order given",
                           [](MapCommand& c, Given& a) { return map_init(c, a.hosts, a.upload); });
  init->add_option("hosts", g.hosts, "The hosts")->type_name("HOST...")->required()->expected(1, 65536);
  init->add_option("--upload", g.upload,
                   "A command to run after each publish, as a JSON list; {file} becomes the map's path")
      ->type_name("JSON-ARRAY");

  CLI::App* add = all.add("add", "Carve a new host's share out of its neighbours", [](MapCommand& c, Given& a) {
    return map_edit_with(c, "add", [&a](const shard::ShardMap& map) { return shard::add_host(map, a.host, a.add); });
  });
  add->add_option("host", g.host, "The new host")->type_name("NEW-HOST")->required();
  add->add_option("--at", g.add.at, "The boundary to straddle: the low of a range, 0 for the seam")
      ->type_name("BUCKET");
  add->add_option("--buckets", g.add.buckets, "How many; default one fair share")
      ->type_name("N")
      ->check(CLI::Range(1u, kBucketCount));

  CLI::App* remove = all.add("remove", "Merge a host's arcs into their neighbours", [](MapCommand& c, Given& a) {
    return map_edit_with(c, "remove",
                         [&a](const shard::ShardMap& map) { return shard::remove_host(map, a.host, a.into); });
  });
  CLI::App* drain = all.add("drain", "Remove a host and follow it until it holds no room",
                            [](MapCommand& c, Given& a) { return map_drain(c, a.host, a.into, a.timeout); });
  for (CLI::App* command : {remove, drain}) {
    command->add_option("host", g.host, "The host that leaves")->type_name("HOST")->required();
    command->add_option("--into", g.into, "The host that receives all its arcs")->type_name("HOST");
  }
  add_duration(*drain, "--timeout", g.timeout, "How long to follow it");

  CLI::App* move = all.add("move", "Hand a range of buckets to a host",
                           [](MapCommand& c, Given& a) { return map_move(c, a.range, a.host, a.fresh); });
  move->add_option("range", g.range, "One bucket or a range; LOW above HIGH crosses the seam")
      ->type_name("LOW-HIGH")
      ->required();
  move->add_option("host", g.host, "A host of the map, or a name under .invalid for nobody")
      ->type_name("HOST")
      ->required();
  move->add_flag("--new", g.fresh, "HOST is not in the map yet");

  all.add("rebalance", "One equal arc for every host: the only wholesale edit",
          [](MapCommand& c, Given&) { return map_edit_with(c, "rebalance", shard::rebalance); });
  all.add("edit", "Edit the current map in VISUAL or EDITOR, then publish it",
          [](MapCommand& c, Given&) { return map_edit(c); });

  CLI::App* publish =
      all.add("publish", "Publish a draft, or upload the current version once more", [](MapCommand& c, Given& a) {
        return map_publish(c, a.file.empty() ? std::nullopt : std::optional(a.file), a.again);
      });
  publish->add_option("file", g.file, "A map whose version is the one it was drafted from")->type_name("FILE|-");
  publish->add_flag("--again", g.again, "Upload the current version once more");

  CLI::App* rollback = all.add("rollback", "Publish an old version's content under the next version",
                               [](MapCommand& c, Given& a) { return map_rollback(c, a.version); });
  rollback->add_option("old", g.version, "Whose content; default the one before the current")->type_name("VERSION");
}

void add_serving(Commands& all) {
  Given& g = all.given();
  CLI::App* serve = all.add(
      "serve", "Serve the store's map over HTTPS, for development and small fleets", [](MapCommand& c, Given& a) {
        return map_serve(c, a.listen.empty() ? "127.0.0.1:9471" : a.listen, a.certificate, a.private_key);
      });
  serve->add_option("--listen", g.listen, "Where (default 127.0.0.1:9471)")->type_name("ADDRESS");
  serve->add_option("--certificate", g.certificate, "PEM file; without it only loopback is served, in plain HTTP")
      ->type_name("FILE");
  serve->add_option("--private-key", g.private_key, "PEM file")->type_name("FILE");

  CLI::App* console = all.add("console", "The web console, on loopback", [](MapCommand& c, Given& a) {
    return map_console(c, a.listen.empty() ? "127.0.0.1:9470" : a.listen);
  });
  console->add_option("--listen", g.listen, "Where (default 127.0.0.1:9470)")->type_name("ADDRESS");
}

}  // namespace

void add_map_options(CLI::App& app, MapArguments& a) {
  MapOptions& o = a.options;
  app.add_option("--store", o.store, "The folder where the map lives (default $TANDEM_STORE)")
      ->type_name("DIR")
      ->take_last();
  app.add_flag("--yes", o.yes, "Publish without asking");
  app.add_flag("--dry-run", o.dry_run, "Preview only: nothing is written");
  app.add_flag("--json", o.json, "Results as JSON, one object a line; text for people goes to stderr");
  app.add_flag("--two-phase", o.two_phase, "Publish the moved buckets as nobody's, wait, then publish the new owners");
  app.add_option("--message", o.message, "Kept in the history")->type_name("TEXT")->take_last();
  app.add_option("--by", o.by, "Who publishes (default user@machine)")->type_name("NAME")->take_last();
  app.add_option("--admin", a.admins, "A host's admin endpoint (repeatable)")
      ->type_name("HOST=URL")
      ->expected(1)
      ->take_all();
  add_duration(app, "--lock-timeout", o.lock_timeout, "How long to wait for another writer");
  add_duration(app, "--upload-timeout", o.upload_timeout, "How long an upload may take", false);
  add_duration(app, "--drain-delay", o.drain_delay, "What the hosts are configured with");
  add_duration(app, "--poll-interval", o.poll_interval, "What the hosts are configured with", false);
  app.add_option("--eviction-rate", o.eviction_rate, "What the hosts are configured with, rooms per second")
      ->type_name("RATE")
      ->capture_default_str()
      ->take_last()
      ->check([](const std::string& given) {
        const double rate = std::strtod(given.c_str(), nullptr);
        return std::isfinite(rate) && rate > 0 ? "" : given + " is not a rate above zero";
      });
}

void add_map(Ctl& ctl) {
  CLI::App* map = ctl.app->add_subcommand("map", "Publish the shard map: its only writer");
  map->require_subcommand(1);
  Commands all(ctl, *map);
  add_map_options(*map, all.given().common);
  add_reading(all);
  add_editing(all);
  add_serving(all);
  add_completing(all);
}

}  // namespace tandem::app
