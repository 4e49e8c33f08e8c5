#include "state/store_impl.hpp"

#include <array>

namespace tandem::state {

std::optional<Fault> Store::Impl::put(const char* name, std::uint64_t value) {
  put_meta.bind_text(1, name);
  put_meta.bind(2, static_cast<std::int64_t>(value));
  return answer(put_meta.run());
}

// A bucket whose rooms are written in the same breath is forgotten first and for certain; the others as far as the
// piece reaches, as half a ring of a big relay is a minute's work.
std::optional<Fault> Store::Impl::wipe_buckets(const Changes& changes, Applied& applied) {
  std::set<Bucket> needed;
  for (const auto& [key, room] : changes.rooms) {
    if (room && changes.wiped_buckets.contains(bucket_of(key))) needed.insert(bucket_of(key));
  }
  int rows = 0;
  for (const Bucket bucket : changes.wiped_buckets) {
    if (rows >= kSweepRows && needed.empty()) break;
    if (rows >= kSweepRows && !needed.contains(bucket)) continue;
    const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(bucket.value >> 8),
                                            static_cast<std::uint8_t>(bucket.value)};
    wipe_bucket.bind(1, bytes);
    if (const auto f = answer(wipe_bucket.run())) return f;
    rows += sqlite3_changes(connection.get());
    needed.erase(bucket);
    applied.wiped.push_back(bucket);
  }
  return std::nullopt;
}

std::optional<Fault> Store::Impl::write_rooms(const Changes& changes) {
  for (const auto& [key, room] : changes.rooms) {
    if (!room) {
      wipe_room.bind(1, key);
      if (const auto f = answer(wipe_room.run())) return f;
      continue;
    }
    put_room.bind(1, key);
    put_room.bind(2, room->verifier);
    if (room->registrant) {
      put_room.bind(3, *room->registrant);
    } else {
      put_room.bind_null(3);
    }
    put_room.bind(4, seconds_of(room->last_activity));
    if (const auto f = answer(put_room.run())) return f;
  }
  for (const auto& [key, at] : changes.touches) {
    touch_room.bind(1, key);
    touch_room.bind(2, seconds_of(at));
    if (const auto f = answer(touch_room.run())) return f;
  }
  return std::nullopt;
}

std::optional<Fault> Store::Impl::write_figures(const Changes& changes) {
  for (const auto& [key, counter] : changes.counters) {
    put_counter.bind(1, key);
    put_counter.bind(2, counter.value);
    put_counter.bind(3, seconds_of(counter.used));
    if (const auto f = answer(put_counter.run())) return f;
  }
  if (changes.floor) {
    if (const auto f = put("floor", changes.floor->value)) return f;
  }
  if (changes.egress) {
    if (const auto f = put("egress_month", static_cast<std::uint64_t>(changes.egress->month))) return f;
    if (const auto f = put("egress_bytes", changes.egress->bytes)) return f;
  }
  return std::nullopt;
}

std::optional<Fault> Store::Impl::sweep(const Sweep& what, Applied& applied) {
  const std::pair<Statement*, WallTime> both[] = {{&sweep_rooms, what.rooms_before},
                                                  {&sweep_counters, what.counters_before}};
  for (const auto& [statement, before] : both) {
    statement->bind(1, seconds_of(before));
    statement->bind(2, kSweepRows);
    if (const auto f = answer(statement->run())) return f;
    if (sqlite3_changes(connection.get()) == kSweepRows) applied.more = true;
  }
  return std::nullopt;
}

// Touches come before the sweep, which would else forget a room that was only just heard of.
std::optional<Fault> Store::Impl::write_all(const Changes& changes, Applied& applied) {
  if (const auto f = wipe_buckets(changes, applied)) return f;
  if (const auto f = write_rooms(changes)) return f;
  if (const auto f = write_figures(changes)) return f;
  return changes.sweep ? sweep(*changes.sweep, applied) : std::nullopt;
}

// Writing on into a file that has left its place would promise what no later run can find.
bool Store::Impl::has_moved() const {
  int moved = 0;
  return sqlite3_file_control(connection.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

std::optional<Fault> Store::Impl::transact(const Changes& changes, Applied& applied) {
  applied = {};
  if (has_moved()) return Fault{Fault::Kind::gone, path + ": the state file was removed or replaced while in use"};
  int code = execute(connection.get(), "BEGIN IMMEDIATE");
  if (code != SQLITE_OK) return fault(code, "write");
  std::optional<Fault> bad = write_all(changes, applied);
  if (!bad && (code = execute(connection.get(), "COMMIT")) != SQLITE_OK) bad = fault(code, "write");
  if (bad && sqlite3_get_autocommit(connection.get()) == 0) (void)execute(connection.get(), "ROLLBACK");
  return bad;
}

std::optional<Fault> Store::apply(const Changes& changes, Applied& applied) {
  auto bad = impl_->transact(changes, applied);
  if (!bad || bad->kind != Fault::Kind::unavailable) return bad;
  // The log may be all that fills the disk: fold it into the file and try once more.
  if (checkpoint()) return bad;
  return impl_->transact(changes, applied);
}

}  // namespace tandem::state
