// init, add, remove, move, rebalance, drain, edit, publish, rollback: what an edit is made of before it is published.
#include "tandem/app/map_command.hpp"
#include "tandem/app/map_files.hpp"
#include "tandem/app/map_source.hpp"
#include "tandem/app/map_upload.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace tandem::app {

using shard::ShardMap;

namespace {

shard::Ranges ranges_of(shard::Edited edited) {
  if (const auto* fault = std::get_if<shard::EditFault>(&edited)) throw refused_edit(*fault);
  return std::get<shard::Ranges>(std::move(edited));
}

std::optional<Bucket> bucket_of(std::string_view text) {
  std::uint32_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || ec != std::errc{} || end != text.data() + text.size() || n >= kBucketCount) return {};
  return Bucket{static_cast<std::uint16_t>(n)};
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

// Through a shell, so that EDITOR may hold arguments; the draft's path is a parameter, never part of the command.
int run_editor(const std::string& editor, const std::string& draft) {
  const std::string script = editor + " \"$1\"";
  const pid_t child = ::fork();
  if (child == 0) {
    // Standard output may be read by a program: a screen editor talks to the terminal.
    if (::isatty(STDOUT_FILENO) != 1) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), "sh", draft.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void forget_draft(const std::filesystem::path& draft) {
  std::error_code ignored;  // a draft too many harms nobody
  std::filesystem::remove(draft, ignored);
}

MapChange from_draft(const std::string& action, const shard::Draft& draft) {
  MapChange change;
  change.action = action;
  change.drafted_from = draft.drafted_from;
  change.edit = [ranges = draft.map.ranges()](const ShardMap&) { return ranges; };
  return change;
}

}  // namespace

int map_init(MapCommand& c, const std::vector<std::string>& hosts, const std::optional<std::string>& upload) {
  std::vector<std::string> command;
  if (upload) {
    auto parsed = parse_upload_command(*upload);
    if (const auto* why = std::get_if<std::string>(&parsed)) throw usage_error("--upload", *upload, *why);
    command = std::get<std::vector<std::string>>(parsed);
  }
  const shard::Ranges ranges = ranges_of(shard::init_ranges(hosts));
  c.publisher().init(ranges, command);
  return kOk;
}

int map_edit_with(MapCommand& c, const std::string& action, std::function<shard::Edited(const ShardMap&)> edit) {
  MapChange change;
  change.action = action;
  change.edit = [edit = std::move(edit)](const ShardMap& current) { return ranges_of(edit(current)); };
  c.publisher().run(change);
  return kOk;
}

int map_move(MapCommand& c, const std::string& range, const std::string& host, bool fresh) {
  const std::size_t dash = range.find('-');
  const auto low = bucket_of(std::string_view(range).substr(0, dash));
  const auto high = dash == std::string::npos ? low : bucket_of(std::string_view(range).substr(dash + 1));
  if (!low || !high)
    throw MapError("invalid_range", "LOW-HIGH: " + range + " is not a bucket or two from 0 to 65535",
                   {{"value", range}}, kUsage);
  return map_edit_with(c, "move", [low, high, host, fresh](const ShardMap& map) {
    return shard::move_range(map, *low, *high, host, fresh);
  });
}

int map_drain(MapCommand& c, const std::string& host, const std::optional<std::string>& into, Duration timeout) {
  MapChange change;
  change.action = "drain";
  change.edit = [&](const ShardMap& current) { return ranges_of(shard::remove_host(current, host, into)); };
  c.publisher().run(change);
  const auto admin = c.options.admins.find(host);
  if (admin == c.options.admins.end() || c.options.dry_run) return kOk;

  using std::chrono::steady_clock;
  const MapVersion version = c.need_store().current().version();
  const auto started = steady_clock::now();
  std::optional<HostMetrics> seen;
  std::optional<steady_clock::time_point> adopted_at;
  std::uint64_t most = 0;
  while (true) {
    if (const auto now = read_metrics(admin->second)) seen = now;
    const double seconds_so_far = to_seconds(steady_clock::now() - started);
    const bool adopted = seen && seen->version >= version;
    const std::uint64_t left = seen ? seen->draining_rooms : 0;
    if (adopted && !adopted_at) adopted_at = steady_clock::now();
    if (adopted && left == 0) {
      c.out.result(
          {{"ok", true}, {"action", "drained"}, {"host", host}, {"seconds", seconds_so_far}, {"rooms_left", 0}},
          host + " is drained after " + std::to_string(static_cast<long>(seconds_so_far)) + " s\n");
      return kOk;
    }
    most = std::max(most, left);
    if (steady_clock::now() - started >= timeout) {
      OrderedJson extra{{"host", host}, {"seconds", seconds_so_far}};
      extra["rooms_left"] = seen ? OrderedJson(left) : OrderedJson(nullptr);
      throw MapError("drain_timeout",
                     host + " " +
                         (!seen      ? "did not answer at " + admin->second
                          : !adopted ? "still holds version " + std::to_string(seen->version.value)
                                     : "still holds " + std::to_string(left) + " draining rooms") +
                         "; the map stays as published",
                     extra);
    }
    std::string line = host + ": ";
    if (!adopted) {
      line += seen ? "waits to adopt version " + std::to_string(version.value) : "does not answer";
    } else {
      const auto done = static_cast<std::size_t>(20 * (most - left) / std::max<std::uint64_t>(most, 1));
      // First the wait, of which some is over, then one room after another.
      const double waiting = to_seconds(c.options.drain_delay) - to_seconds(steady_clock::now() - *adopted_at);
      const double to_go = std::max(0.0, waiting) + static_cast<double>(left) / c.options.eviction_rate;
      line += "[" + std::string(done, '#') + std::string(20 - done, '.') + "] " + std::to_string(left) +
              " rooms left, about " + std::to_string(std::lround(to_go)) + " s to go";
    }
    c.out.progress(line);
    if (interrupted())
      throw MapError("interrupted",
                     "stopped following " + host + " with " + std::to_string(left) +
                         " rooms left; the map is published and the drain goes on",
                     {{"host", host}, {"rooms_left", left}});
    const Duration until_timeout = timeout - (steady_clock::now() - started);
    std::this_thread::sleep_for(std::clamp<Duration>(until_timeout, Duration{0}, milliseconds(250)));
  }
}

int map_edit(MapCommand& c) {
  MapStore& store = c.need_store();
  const char* editor = environment("VISUAL");
  if (!editor) editor = environment("EDITOR");
  if (!editor) throw usage_error("edit", "", "no editor is named; set VISUAL or EDITOR");
  const std::string before = store.current().to_json();
  const std::filesystem::path draft = store.keep_draft(before);
  if (const int status = run_editor(editor, draft); status != 0) {
    const bool changed = read_whole(draft, shard::kMaxMapBytes) != before;
    if (!changed) forget_draft(draft);
    OrderedJson extra{{"value", editor}};
    if (changed) extra["draft"] = draft.string();
    throw MapError("not_confirmed",
                   "edit: " + std::string(editor) + " ended with status " + std::to_string(status) +
                       ": nothing is published" + (changed ? "; the draft is kept at " + draft.string() : ""),
                   extra);
  }
  try {
    MapChange change = from_draft("edit", parse_draft(draft, read_source(draft)));
    change.draft = draft.string();
    c.publisher().run(change);
  } catch (MapError& error) {
    // What was published needs no draft; everything else would be lost work.
    if (error.code() == "not_uploaded")
      forget_draft(draft);
    else if (!error.extra().contains("draft")) {
      error.add("draft", draft.string());
      throw MapError(error.code(), std::string(error.what()) + "; the draft is kept at " + draft.string(),
                     error.extra(), error.exit_code());
    }
    throw;
  }
  forget_draft(draft);
  return kOk;
}

int map_publish(MapCommand& c, const std::optional<std::string>& file, bool again) {
  if (again && file) throw usage_error("publish", *file, "takes no file with --again");
  if (again) {
    const OrderedJson done = c.publisher().upload_again();
    const std::string version = std::to_string(done["version"].get<std::uint64_t>());
    c.out.result(done, done["uploaded"].is_null() ? "nothing is uploaded: version " + version + " stays\n"
                                                  : "uploaded version " + version + "\n");
    return kOk;
  }
  if (!file) throw usage_error("FILE", "", "publish needs a file, - for stdin, or --again");
  (void)c.need_store();
  const std::string text = read_source(*file);
  MapChange change = from_draft("publish", parse_draft(*file == "-" ? "stdin" : *file, text));
  if (*file == "-") {
    change.draft_text = text;
  } else {
    change.draft = *file;
  }
  c.publisher().run(change);
  return kOk;
}

int map_rollback(MapCommand& c, std::optional<std::uint64_t> version) {
  MapStore& store = c.need_store();
  // "The one before the current" is judged where the edit is made, under the lock: another writer's version is not
  // undone unseen.
  auto chosen = std::make_shared<MapVersion>();
  MapChange change;
  change.action = "rollback";
  change.of = [chosen] { return *chosen; };
  change.edit = [&store, version, chosen](const ShardMap& current) {
    if (!version && current.version().value == 0)
      throw MapError("unknown_version", "VERSION: there is none before version 0", {{"value", 0}});
    *chosen = MapVersion{version.value_or(current.version().value - 1)};
    const auto old = store.version(*chosen, current);
    if (!old)
      throw MapError(
          "unknown_version",
          "VERSION: " + std::to_string(chosen->value) + " was never published here, or its history entry is gone",
          {{"value", chosen->value}});
    return old->ranges();
  };
  c.publisher().run(change);
  return kOk;
}

}  // namespace tandem::app
