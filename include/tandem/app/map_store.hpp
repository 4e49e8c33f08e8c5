// Where a shard map lives: a folder that any web server serves, with one writer at a time (2b-map-tool, "One writer").
//
//   DIR/shardmap.json          what is served: always whole, always valid, its version never falls
//   DIR/history/VERSION.json   every published map with who, when and why; one above the map's version was never
//   published DIR/.tandem/               lock (flock), drafts/, store.json (the upload command), uploaded (the last
//   version that was)
//
// Readers take no lock. Whoever writes holds a StoreLock; killed at any step, the map is the old or the new one, and
// the history says which. Failures are MapErrors.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/shard/map.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tandem::app {

struct HistoryEntry {
  MapVersion version;
  std::string at, by, action, message;  // at: "2026-07-12T10:00:00Z"
  std::uint32_t moved_buckets = 0;
};

// Held until destroyed. A holder's name stands in the lock file, for whoever waits in vain.
class StoreLock {
 public:
  StoreLock(StoreLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StoreLock& operator=(StoreLock&&) = delete;
  ~StoreLock();

 private:
  friend class MapStore;
  explicit StoreLock(int fd) : fd_(fd) {}
  int fd_;
};

class MapStore {
 public:
  explicit MapStore(const std::filesystem::path& folder)
      : folder_(std::filesystem::absolute(folder).lexically_normal()) {}

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] std::filesystem::path map_path() const { return folder_ / "shardmap.json"; }

  // ---- reading
  [[nodiscard]] bool has_map() const;
  [[nodiscard]] std::string text() const;         // as served; errors: no_map, store_failed
  [[nodiscard]] shard::ShardMap current() const;  // errors: no_map, invalid_map, store_failed
  // A published version; nothing where there is none (errors only for a damaged entry).
  [[nodiscard]] std::optional<shard::ShardMap> version(MapVersion v, const shard::ShardMap& current) const;
  [[nodiscard]] std::optional<HistoryEntry> entry(MapVersion v) const;
  [[nodiscard]] std::vector<HistoryEntry> history(MapVersion current, std::size_t limit) const;  // newest first
  // When the current map was written: finer than the history, which keeps whole seconds.
  [[nodiscard]] std::optional<std::chrono::system_clock::time_point> published_at(MapVersion current) const;

  // ---- writing
  [[nodiscard]] StoreLock lock(Duration timeout, const std::string& holder);  // error: locked
  void create_folders();
  // Publishes: history first, then the map. The caller has checked that `map` is one above what is there.
  void commit(const StoreLock& lock, const shard::ShardMap& map, const HistoryEntry& entry);
  [[nodiscard]] std::filesystem::path keep_draft(const std::string& text);  // under a name of its own

  // ---- uploads
  [[nodiscard]] std::vector<std::string> upload_command() const;  // empty: none
  void set_upload_command(const StoreLock& lock, const std::vector<std::string>& command);
  [[nodiscard]] std::optional<MapVersion> uploaded() const;
  void set_uploaded(const StoreLock& lock, MapVersion v);

  // For tests that die between two steps: called after each with its name.
  std::function<void(const char*)> after_step;

 private:
  [[nodiscard]] std::filesystem::path own() const { return folder_ / ".tandem"; }
  [[nodiscard]] std::filesystem::path history_path(MapVersion v) const;
  [[nodiscard]] std::optional<std::chrono::system_clock::time_point> modified_at() const;
  void step(const char* name) const {
    if (after_step) after_step(name);
  }
  std::filesystem::path folder_;
};

[[nodiscard]] std::string utc_text(WallTime t);                            // "2026-07-12T10:00:00Z"
[[nodiscard]] std::optional<WallTime> parse_utc(const std::string& text);  // exactly that form

}  // namespace tandem::app
