// What was decided but is not on disk: the newest word on each room, counter and figure, coalesced. With no disk at all
// this is the whole memory of the relay. Plain values, no clock, no file.
//
// Tables are ordered, not hashed: room names come from strangers, who could aim at a hash.
#pragma once

#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"
#include "tandem/relay/event.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace tandem::state {

// Under which a room is stored: SHA-256 over the 64 characters of its name, of which the log's tag is the beginning,
// its last two bytes replaced by the room's bucket, so that a bucket that moved can be forgotten whole. A stolen state
// file names no room.
using RoomKey = Sha256;
[[nodiscard]] RoomKey key_of(const RoomName& room);
[[nodiscard]] constexpr Bucket bucket_of(const RoomKey& key) noexcept {
  return {static_cast<std::uint16_t>(key[30] << 8 | key[31])};
}

struct Counter {
  std::uint32_t value = 0;
  WallTime used{};
};

struct Egress {
  std::int32_t month = 0;  // year * 12 + month - 1 (UTC)
  std::uint64_t bytes = 0;
  friend bool operator==(const Egress&, const Egress&) = default;
};

// Forget what was idle since before these times.
struct Sweep {
  WallTime rooms_before{}, counters_before{};
};

struct Changes {
  std::map<RoomKey, std::optional<relay::StoredRoom>> rooms;  // nothing: wiped
  std::map<RoomKey, WallTime> touches;                        // of rooms that are not in `rooms`
  std::map<relay::KeyId, Counter> counters;
  std::set<Bucket> wiped_buckets;  // to be forgotten on disk, each before a room of its own is written
  std::optional<MapVersion> floor;
  std::optional<Egress> egress;
  std::optional<Sweep> sweep;

  void put(const RoomKey& key, const relay::StoredRoom& room);
  void wipe(const RoomKey& key);
  void wipe(const std::vector<Bucket>& buckets, bool on_disk_too);
  void touch(const RoomKey& key, WallTime at);                               // never backwards
  void count(const relay::KeyId& key, std::uint32_t counter, WallTime now);  // never backwards
  void sweep_later(Sweep what);

  // Applies the sweep to what is held here, for a relay without a disk: the rooms and counters themselves go.
  void sweep_here(const Sweep& what);
  // Keeps at most `rooms` rooms (those last active) and as many touches and counters.
  void bound(std::size_t limit);

  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;  // entries of all tables
};

}  // namespace tandem::state
