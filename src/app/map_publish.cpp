#include "tandem/app/map_publish.hpp"

#include "tandem/app/map_upload.hpp"

#include <chrono>
#include <pwd.h>
#include <unistd.h>

namespace tandem::app {

using shard::ShardMap;

namespace {

WallTime wall_now() { return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()); }

ShardMap made(MapVersion version, shard::Ranges ranges) {
  auto map = ShardMap::make(version, std::move(ranges));
  if (const auto* fault = std::get_if<shard::MapFault>(&map)) throw invalid_map("the edited map", *fault);
  return std::get<ShardMap>(std::move(map));
}

ShardMap with_version(const ShardMap& map, MapVersion version) { return made(version, map.ranges()); }

}  // namespace

std::string user_at_machine() {
  const passwd* user = ::getpwuid(::geteuid());
  char machine[256] = "localhost";
  if (::gethostname(machine, sizeof machine - 1) != 0) machine[0] = '\0';
  return std::string(user ? user->pw_name : std::to_string(::geteuid())) + "@" + machine;
}

MapPublisher::Plan MapPublisher::plan(const ShardMap& current, const MapChange& change,
                                      std::optional<int> phase) const {
  ShardMap after = made({current.version().value + 1}, shard::merged(change.edit(current)));
  Published what;
  what.action = change.action;
  what.base = current.version();
  what.phase = phase;
  if (change.of) what.of = change.of();
  what.moves = moves_between(current, after);
  what.version = what.moves.empty() ? current.version() : after.version();
  what.hosts = host_changes(current, after);
  what.forecast = forecast(current, what.moves, rooms_, options_.drain_delay, options_.eviction_rate);
  what.path = store_.map_path();
  if (phase != 1) {  // between the phases it is the plan that nobody owns them
    what.warnings = map_warnings(after);
  }
  return {current, std::move(after), std::move(what)};
}

void MapPublisher::lose(const MapChange& change, MapVersion base, const ShardMap& current,
                        const std::string& draft_text) {
  std::string draft = change.draft;
  if (draft.empty() && !options_.dry_run) draft = store_.keep_draft(draft_text).string();
  const auto winner = store_.entry(current.version());
  std::vector<shard::Move> changed;
  if (const auto from = store_.version(base, current)) changed = moves_between(*from, current);
  const std::string who = winner ? winner->by : "somebody", when = winner ? winner->at : "an unknown time";
  std::string message =
      "conflict: version " + std::to_string(current.version().value) + " was published by " + who + " at " + when;
  message += base > current.version() ? "; version " + std::to_string(base.value) + " was never published"
             : changed.empty()        ? ", moving nothing"
                                      : ", moving " + describe_moves(changed, 5);
  message += "; nothing is published";
  if (!draft.empty()) message += ", the draft is kept at " + draft;
  OrderedJson now{{"version", current.version().value}};
  now["by"] = winner ? OrderedJson(winner->by) : OrderedJson(nullptr);
  now["at"] = winner ? OrderedJson(winner->at) : OrderedJson(nullptr);
  OrderedJson extra;
  extra["current"] = now;
  extra["changed"] = to_json(changed);
  extra["draft"] = draft.empty() ? OrderedJson(nullptr) : OrderedJson(draft);
  extra["value"] = base.value;
  throw MapError("conflict", message, extra);
}

void MapPublisher::check_base(const MapChange& change, const ShardMap& current, const std::string& fallback_draft) {
  if (change.drafted_from && *change.drafted_from != current.version())
    lose(change, *change.drafted_from, current, change.draft_text.empty() ? fallback_draft : change.draft_text);
}

void MapPublisher::commit(const StoreLock& lock, Plan& plan, const std::string& action) {
  const auto upload = store_.upload_command();  // judged before anything is written
  store_.commit(lock, plan.after,
                {plan.after.version(), utc_text(wall_now()), by(), action, options_.message,
                 shard::moved_buckets(plan.what.moves)});
  plan.what.published = true;
  if (upload.empty()) return;
  plan.what.uploaded = false;
  if (const auto failed = run_upload(upload, store_.map_path(), plan.after.version(), options_.upload_timeout)) {
    const std::uint64_t v = plan.after.version().value;
    OrderedJson extra = to_json(plan.what);
    for (const char* key : {"ok", "version", "warnings"}) extra.erase(key);
    OrderedJson members{{"version", v}};
    members.update(extra);
    throw MapError("not_uploaded",
                   "version " + std::to_string(v) + ": written, not uploaded: the upload command " + *failed +
                       "; publish --again uploads it once more",
                   members);
  }
  store_.set_uploaded(lock, plan.after.version());
  plan.what.uploaded = true;
}

Published MapPublisher::publish(const MapChange& change, std::optional<int> phase, bool ask, const std::string& note) {
  const auto nothing_to_do = [](const Plan& p) { return p.what.moves.empty(); };
  if (options_.dry_run || ask) {
    const ShardMap current = store_.current();
    check_base(change, current, current.to_json());
    Plan planned = plan(current, change, phase);
    if (nothing_to_do(planned)) return planned.what;
    driver_.preview(planned.what, note);
    if (options_.dry_run) return planned.what;
    const std::string draft_text = with_version(planned.after, current.version()).to_json();
    if (!driver_.ask(planned.after.version())) {
      OrderedJson extra{{"version", planned.after.version().value}};
      if (!change.draft.empty()) extra["draft"] = change.draft;
      throw MapError("not_confirmed",
                     "version " + std::to_string(planned.after.version().value) +
                         ": not confirmed, nothing is published" +
                         (change.draft.empty() ? "" : "; the draft is kept at " + change.draft),
                     extra);
    }
    const StoreLock lock = store_.lock(options_.lock_timeout, by());
    const ShardMap now = store_.current();
    if (now.version() != current.version() || !now.same_owners(current))
      lose(change, current.version(), now, draft_text);
    commit(lock, planned, change.action);
    return planned.what;
  }
  if (!store_.has_map()) (void)store_.text();  // names what is missing; a lock would make folders
  const StoreLock lock = store_.lock(options_.lock_timeout, by());
  const ShardMap current = store_.current();
  check_base(change, current, current.to_json());
  Plan planned = plan(current, change, phase);
  if (nothing_to_do(planned)) return planned.what;
  driver_.preview(planned.what, note);
  commit(lock, planned, change.action);
  return planned.what;
}

void MapPublisher::run(const MapChange& change) {
  if (!store_.has_map()) (void)store_.text();
  // Asked before the lock is taken: a host that does not answer must not keep other writers waiting.
  for (const auto& [host, metrics] : read_metrics_of_all(options_.admins)) rooms_[host] = metrics.rooms;
  if (options_.two_phase) return two_phases(change);
  driver_.report(publish(change, {}, !options_.yes, ""));
}

void MapPublisher::init(const shard::Ranges& ranges, const std::vector<std::string>& upload_command) {
  const auto refuse_where_one_exists = [&] {
    if (store_.has_map())
      throw MapError("already_initialised", "--store: " + store_.folder().string() + " holds a map already",
                     {{"value", store_.folder().string()}});
  };
  refuse_where_one_exists();
  const ShardMap map = made({1}, ranges);
  Plan planned{map, map, {}};
  planned.what.action = "init";
  planned.what.version = {1};
  planned.what.path = store_.map_path();
  planned.what.forecast.rooms_affected = 0;
  for (const auto& [host, share] : shares(map)) planned.what.hosts[host] = {0, share.buckets};
  driver_.preview(planned.what, "");
  if (options_.dry_run) return driver_.report(planned.what);
  if (!options_.yes && !driver_.ask({1}))
    throw MapError("not_confirmed", "version 1: not confirmed, nothing is published", {{"version", 1}});
  const StoreLock lock = store_.lock(options_.lock_timeout, by());
  refuse_where_one_exists();
  if (!upload_command.empty()) store_.set_upload_command(lock, upload_command);
  commit(lock, planned, "init");
  driver_.report(planned.what);
}

OrderedJson MapPublisher::upload_again() {
  if (!store_.has_map()) (void)store_.text();
  const auto command = store_.upload_command();
  std::optional<StoreLock> lock;
  if (!options_.dry_run) lock.emplace(store_.lock(options_.lock_timeout, by()));
  const MapVersion version = store_.current().version();
  OrderedJson out{{"ok", true}, {"action", "upload"}, {"version", version.value}, {"uploaded", nullptr}};
  if (command.empty() || !lock) return out;
  if (const auto failed = run_upload(command, store_.map_path(), version, options_.upload_timeout))
    throw MapError(
        "not_uploaded",
        "version " + std::to_string(version.value) + ": written, not uploaded: the upload command " + *failed,
        {{"version", version.value}, {"uploaded", false}});
  store_.set_uploaded(*lock, version);
  out["uploaded"] = true;
  return out;
}

}  // namespace tandem::app
