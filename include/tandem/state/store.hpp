// The state file: SQLite in WAL mode, holding soft state only (3-operations 3.2). What is kept: per room, under a hash
// of its name, the verifier, the key id that registered it and the time of the last authenticated contact; per App
// Attest key the newest assertion counter; the map version floor; the month's egress. Losing the file costs a silent
// re-registration.
//
// Knows no policy: when to write, what to do about a broken disk and how to go on without one is soft_state.hpp's.
// Blocks on the disk, so it lives on the worker's thread. Never throws; every failure is a Fault that names the file.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"
#include "tandem/relay/event.hpp"
#include "tandem/state/changes.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/system/result.hpp>

namespace tandem::state {

inline constexpr int kSchemaVersion = 1;  // PRAGMA user_version

struct Fault {
  enum class Kind : std::uint8_t {
    damaged,      // not a database, or its content does not hold together: to be set aside
    newer,        // of a schema that this program does not know: to be left alone
    gone,         // removed, or another put in its place, while it was open: to be opened anew
    unavailable,  // cannot be opened, read or written now: to be tried again
  } kind = Kind::unavailable;
  std::string message;  // one line: what, which file, why
};

// What value() does on a fault: it was our bug to call it.
[[noreturn]] inline void throw_exception_from_error(const Fault& fault, const boost::source_location&) {
  throw std::logic_error(fault.message);
}

template <class T>
using Outcome = boost::system::result<T, Fault>;

class Store {
 public:
  // Opens or creates (0600) the file. A small one is checked throughout, so that damage shows before it is relied on.
  [[nodiscard]] static Outcome<Store> open(const std::string& path);
  // What `open` would find, without touching anything: for a check beside a running relay. Nothing: it is fine, or will
  // be created. A missing folder and a damaged file are faults that open() or its caller would get over.
  [[nodiscard]] static std::optional<Fault> inspect(const std::string& path);
  // Renames a damaged file and its companions to NAME.damaged-TIME. Returns the new name, or why it could not.
  [[nodiscard]] static Outcome<std::string> set_aside(const std::string& path, WallTime now);

  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  [[nodiscard]] Outcome<std::optional<relay::StoredRoom>> room(const RoomKey& key);
  [[nodiscard]] Outcome<std::uint32_t> counter(const relay::KeyId& key);  // 0: none
  [[nodiscard]] Outcome<std::optional<MapVersion>> floor();
  [[nodiscard]] Outcome<std::optional<Egress>> egress();

  // All of it in one transaction, durable when it returns without a fault; otherwise nothing of it. Only forgetting
  // goes in pieces of about kSweepRows, so that whoever waits for a room need not wait for that: rooms and counters
  // idle since before the sweep's times (`more` says that there are others), and whole buckets (`wiped` are done).
  struct Applied {
    bool more = false;
    std::vector<Bucket> wiped{};
  };
  static constexpr int kSweepRows = 500;
  [[nodiscard]] std::optional<Fault> apply(const Changes& changes, Applied& applied);

  // The file could only be read when it was opened. It stays so until it is opened again.
  [[nodiscard]] bool is_read_only() const;
  // Moves what the log (-wal) holds into the file and empties it, so that what was forgotten is gone from both.
  [[nodiscard]] std::optional<Fault> checkpoint();
  // For `tandemctl floor --reset`.
  [[nodiscard]] std::optional<Fault> clear_floor();

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::state
