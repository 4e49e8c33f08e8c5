// Which room leaves when, after its bucket was given to another host (2-sharding 2.5). Pure: time comes in, rooms are
// numbers.
//
// A relinquished bucket waits `delay` from the adoption that took it away, again from any later change of its owner,
// and without end while nobody owns it. Then its rooms are evicted, evenly spaced at a (fractional) rate over the whole
// host: earliest deadline first, then in the order they were created. A room that leaves by itself leaves the queue.
//
// Cost: relinquish, owner_changed and reacquire O(log n) per room of that bucket; room_left O(log n); next_eviction
// O(log n); next_deadline O(1). Nothing grows with buckets or rooms that are not moving.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace tandem::shard {

// A room's serial: given at its creation, ascending, never reused.
struct RoomSerial {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(RoomSerial, RoomSerial) = default;
};

class DrainQueue {
 public:
  DrainQueue(Duration delay, double rooms_per_second);
  ~DrainQueue();

  void set_rate(double rooms_per_second);  // takes effect from the last eviction on
  void set_delay(Duration delay);          // for waits that start later

  // The bucket was taken from us by the map adopted now; `rooms`: those that live in it. has_owner false: nobody owns
  // it.
  void relinquish(Bucket bucket, std::span<const RoomSerial> rooms, bool has_owner, TimePoint now);
  void owner_changed(Bucket bucket, bool has_owner, TimePoint now);  // no-op unless the bucket drains
  void reacquire(Bucket bucket);                                     // its rooms stay after all
  void room_left(Bucket bucket, RoomSerial room);                    // by itself

  // The next room to evict, if one is due now: removes it. Call until empty; at most one per 1/rate second comes out.
  struct Eviction {
    Bucket bucket;
    RoomSerial room;
  };
  [[nodiscard]] std::optional<Eviction> next_eviction(TimePoint now);
  // Buckets whose wait has ended since the last call (for forgetting verifiers of rooms without sockets): removed one
  // by one.
  [[nodiscard]] std::optional<Bucket> next_ended_wait(TimePoint now);

  [[nodiscard]] TimePoint next_deadline() const;        // of the next eviction or ended wait; kNever where none
  [[nodiscard]] bool is_draining(Bucket bucket) const;  // relinquished, and its wait or eviction is not over
  [[nodiscard]] std::uint64_t rooms_left() const noexcept;
  [[nodiscard]] std::size_t buckets() const noexcept;  // known to it: is_consistent() looks at each
  [[nodiscard]] std::uint32_t buckets_with_rooms() const noexcept;
  // When the last queued room will have been evicted; nothing where the queue is empty or some rooms' bucket has no
  // owner.
  [[nodiscard]] std::optional<TimePoint> expected_end(TimePoint now) const;
  [[nodiscard]] bool is_consistent() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::shard
