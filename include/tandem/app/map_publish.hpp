// Publishing an edit: preview, question, lock, generation check, commit, upload; in one phase or in two (2b-map-tool).
// The only way a new version comes to be, for the command line and the console alike.
#pragma once

#include "tandem/app/map_error.hpp"
#include "tandem/app/map_fleet.hpp"
#include "tandem/app/map_options.hpp"
#include "tandem/app/map_store.hpp"
#include "tandem/shard/map_diff.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tandem::app {

struct MapWarning {
  std::string code, message;
};

// One edit, to be applied to whatever map is current when its turn comes.
struct MapChange {
  std::string action;                                                 // "add", ..., as the history keeps it
  std::function<shard::Ranges(const shard::ShardMap& current)> edit;  // throws MapError
  std::optional<MapVersion> drafted_from;  // must be the current version, else the race is lost
  std::string draft;       // a file that holds the edit already; empty: what loses a race is kept as a new draft
  std::string draft_text;  // what to keep where the race is lost before there was a preview
  std::function<MapVersion()> of;  // rollback: whose content, asked after edit()
};

// What a publish did, or would do.
struct Published {
  std::string action;
  std::optional<MapVersion> base;  // nothing for init
  MapVersion version;
  bool published = false;
  std::optional<int> phase;
  std::vector<shard::Move> moves;
  std::map<std::string, shard::HostChange> hosts;
  shard::Forecast forecast;
  std::optional<bool> uploaded;  // nothing where the store has no upload command
  std::vector<MapWarning> warnings;
  std::string path;
  std::optional<MapVersion> of;
};
[[nodiscard]] OrderedJson to_json(const Published& p);
[[nodiscard]] OrderedJson to_json(const std::vector<shard::Move>& moves);
[[nodiscard]] OrderedJson to_json(const std::map<std::string, shard::HostChange>& hosts);
[[nodiscard]] OrderedJson to_json(const std::vector<MapWarning>& warnings);
[[nodiscard]] OrderedJson to_json(const shard::Ranges& ranges);

class MapPublisher {
 public:
  // What the publisher says to whoever drives it. All are called from inside run(); none may be empty.
  struct Driver {
    std::function<void(const Published& plan, const std::string& text)> preview;  // before anything is written
    std::function<bool(MapVersion version)> ask;                                  // the question
    std::function<void(const Published& done)> report;      // after each published (or unpublished) version
    std::function<void(const std::string& line)> progress;  // while a two-phase publish waits
    std::function<bool()> interrupted;                      // asked while waiting
  };
  MapPublisher(MapStore& store, const MapOptions& options, Driver driver)
      : store_(store), options_(options), driver_(std::move(driver)) {}

  // Publishes, in two phases where the options say so. Errors: conflict, not_confirmed, not_uploaded and those of the
  // store.
  void run(const MapChange& change);
  // Version 1. Error: already_initialised.
  void init(const shard::Ranges& ranges, const std::vector<std::string>& upload_command);
  // The current version once more.
  [[nodiscard]] OrderedJson upload_again();

 private:
  struct Plan {
    shard::ShardMap before, after;  // `after` carries the new version
    Published what;
  };
  [[nodiscard]] Plan plan(const shard::ShardMap& current, const MapChange& change, std::optional<int> phase) const;
  [[nodiscard]] Published publish(const MapChange& change, std::optional<int> phase, bool ask, const std::string& note);
  void two_phases(const MapChange& change);
  [[nodiscard]] std::vector<MapWarning> wait_for_hosts(const shard::ShardMap& before, const shard::ShardMap& after,
                                                       MapVersion version);
  void commit(const StoreLock& lock, Plan& plan, const std::string& action);
  void check_base(const MapChange& change, const shard::ShardMap& current, const std::string& fallback_draft);
  [[noreturn]] void lose(const MapChange& change, MapVersion base, const shard::ShardMap& current,
                         const std::string& draft_text);
  [[nodiscard]] std::string by() const { return options_.by.empty() ? user_at_machine() : options_.by; }

  MapStore& store_;
  const MapOptions& options_;
  Driver driver_;
  std::map<std::string, std::uint64_t> rooms_;  // as reported before the lock was taken
};

// The preview for people: buckets moved (each range, from, to), rooms affected or `unknown`, the time to converge.
[[nodiscard]] std::string preview_text(const Published& plan);
[[nodiscard]] std::string describe_moves(const std::vector<shard::Move>& moves,
                                         std::size_t at_most);                   // "7-9 a to b, ..."
[[nodiscard]] std::vector<MapWarning> map_warnings(const shard::ShardMap& map);  // unowned_buckets, unmerged_ranges
[[nodiscard]] std::vector<MapWarning> upload_warnings(const MapStore& store, MapVersion current);  // not_uploaded

}  // namespace tandem::app
