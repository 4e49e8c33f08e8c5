// The store's inside, shared by its source files: store.cpp opens, checks and reads, store_apply.cpp writes.
#pragma once

#include "state/sqlite.hpp"
#include "state/store_file.hpp"
#include "tandem/state/store.hpp"

namespace tandem::state {

[[nodiscard]] inline std::int64_t seconds_of(WallTime at) { return at.time_since_epoch().count(); }

struct Store::Impl {
  std::string path;
  ConnectionPtr connection;
  Statement get_room, put_room, wipe_room, wipe_bucket, touch_room, sweep_rooms, get_counter, put_counter,
      sweep_counters, get_meta, put_meta;

  [[nodiscard]] Fault fault(int code, std::string_view doing) const {
    return sqlite_fault(connection.get(), code, path, doing);
  }
  [[nodiscard]] Fault damaged(std::string_view what) const {
    return {Fault::Kind::damaged, path + ": the state file is damaged: " + std::string(what)};
  }

  [[nodiscard]] std::optional<Fault> answer(int code) const {
    return code == SQLITE_OK ? std::nullopt : std::optional(fault(code, "write"));
  }

  // ---- store.cpp
  [[nodiscard]] std::optional<Fault> check(std::int64_t version);
  [[nodiscard]] std::optional<Fault> prepare();
  [[nodiscard]] Outcome<std::optional<std::int64_t>> meta(const char* name);

  // ---- store_apply.cpp
  [[nodiscard]] std::optional<Fault> transact(const Changes& changes, Applied& applied);

 private:
  [[nodiscard]] bool has_moved() const;
  [[nodiscard]] std::optional<Fault> write_all(const Changes& changes, Applied& applied);
  [[nodiscard]] std::optional<Fault> wipe_buckets(const Changes& changes, Applied& applied);
  [[nodiscard]] std::optional<Fault> write_rooms(const Changes& changes);
  [[nodiscard]] std::optional<Fault> write_figures(const Changes& changes);
  [[nodiscard]] std::optional<Fault> put(const char* name, std::uint64_t value);
  [[nodiscard]] std::optional<Fault> sweep(const Sweep& what, Applied& applied);
};

}  // namespace tandem::state
