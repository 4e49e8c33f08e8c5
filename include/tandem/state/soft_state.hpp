// What the relay remembers beyond a socket, on disk where it can be and in memory where it cannot (3-operations 3.2).
// Decides when changes are written, what is answered from memory, what a broken or full disk means (go on in memory,
// try again), and when a damaged file is set aside.
//
// Every change goes to memory first and counts at once; flush() makes it durable. A change that nobody waits for is at
// most kWriteDelay late. With a path of nothing there is no disk and never was: flush() succeeds and memory is all
// there is.
//
// Blocks on the disk: lives on the worker's thread. Time comes in as an argument. Not thread-safe.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/relay/event.hpp"
#include "tandem/state/changes.hpp"
#include "tandem/state/store.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace tandem::state {

inline constexpr Duration kWriteDelay = milliseconds(500);
inline constexpr Duration kRetryDelay = seconds(3);  // of a disk that failed
inline constexpr std::size_t kHeldEntries = 262144;  // of each kind, while there is no disk to put them on
inline constexpr Duration kCounterLife = std::chrono::hours(24 * 365);

class SoftState {
 public:
  struct Reports {
    std::function<void(const std::string&)> fault;      // each is counted and logged
    std::function<void(const std::string&)> recovered;  // logged
  };

  SoftState(std::optional<std::string> path, Reports reports);

  // Once, first. A fault is fatal: the file is of a newer schema, and must neither be written nor ignored. Everything
  // else is reported and got over.
  [[nodiscard]] std::optional<Fault> open(Now now);

  // ---- reading: what counts now, durable or not. What a broken disk does not tell is as if it had never been.
  [[nodiscard]] std::optional<relay::StoredRoom> room(const RoomName& name, Now now);
  [[nodiscard]] std::uint32_t counter(const relay::KeyId& key, Now now);
  [[nodiscard]] std::optional<MapVersion> floor(Now now);
  [[nodiscard]] std::optional<Egress> egress(Now now);

  // ---- changing
  void put(const RoomName& name, const relay::StoredRoom& room, Now now);
  void wipe(const RoomName& name, Now now);
  void wipe(const std::vector<Bucket>& buckets, Now now);
  void touch(const RoomName& name, WallTime at, Now now);
  void count(const relay::KeyId& key, std::uint32_t counter, Now now);
  void set_floor(MapVersion floor, Now now);
  void set_egress(Egress egress, Now now);
  // believed: now by the clock of retention, which a step of the wall clock does not carry away.
  void sweep(WallTime rooms_before, WallTime believed, Now now);

  // ---- writing
  // True once every change so far is durable, or where there is no disk by choice. One transaction for all of them, but
  // for sweeps and whole buckets, of which each call forgets a piece.
  [[nodiscard]] bool flush(Now now);
  // When flush() wants to be called though nobody waits: kNever where nothing is to be written.
  [[nodiscard]] TimePoint next_flush() const noexcept;

  [[nodiscard]] bool has_disk() const noexcept { return path_.has_value(); }
  [[nodiscard]] bool degraded() const noexcept { return has_disk() && degraded_; }

 private:
  void failed(const Fault& fault, Now now);
  void reopen(Now now);
  void changed(Now now);
  template <class T, class Read>
  [[nodiscard]] T read(Read read, T otherwise, Now now);

  std::optional<std::string> path_;
  Reports reports_;
  std::optional<Store> store_;
  Changes changes_;
  TimePoint next_flush_ = kNever, next_try_{};
  bool degraded_ = false, empty_log_ = false;  // empty_log_: something was forgotten that the log still holds
  std::string last_fault_;
};

}  // namespace tandem::state
