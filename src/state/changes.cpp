#include "tandem/state/changes.hpp"

#include <algorithm>
#include <vector>

namespace tandem::state {

namespace {

// Drops the entries with the earliest times until `limit` are left.
template <class Map, class TimeOf>
void keep_latest(Map& map, std::size_t limit, TimeOf time_of) {
  if (map.size() <= limit) return;
  std::vector<WallTime> times;
  times.reserve(map.size());
  for (const auto& [key, value] : map) times.push_back(time_of(value));
  const std::size_t excess = map.size() - limit;
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(excess));
  const WallTime cut = times[excess];
  std::erase_if(map, [&](const auto& entry) { return time_of(entry.second) < cut; });
  // Of those with the very same time any will do.
  for (auto it = map.begin(); it != map.end() && map.size() > limit;) {
    it = time_of(it->second) == cut ? map.erase(it) : std::next(it);
  }
}

}  // namespace

RoomKey key_of(const RoomName& room) {
  RoomKey key = sha256(bytes_of(room.hex()));
  key[30] = static_cast<std::uint8_t>(room.bucket().value >> 8);
  key[31] = static_cast<std::uint8_t>(room.bucket().value);
  return key;
}

void Changes::put(const RoomKey& key, const relay::StoredRoom& room) {
  touches.erase(key);
  rooms[key] = room;
}

void Changes::wipe(const RoomKey& key) {
  touches.erase(key);
  rooms[key] = std::nullopt;
}

void Changes::wipe(const std::vector<Bucket>& buckets, bool on_disk_too) {
  const std::set<Bucket> gone(buckets.begin(), buckets.end());
  const auto moved = [&](const auto& entry) { return gone.contains(bucket_of(entry.first)); };
  std::erase_if(rooms, moved);
  std::erase_if(touches, moved);
  if (on_disk_too) wiped_buckets.insert(gone.begin(), gone.end());
}

void Changes::touch(const RoomKey& key, WallTime at) {
  const auto known = rooms.find(key);
  if (known == rooms.end()) {
    WallTime& last = touches[key];
    last = std::max(last, at);
  } else if (known->second) {
    known->second->last_activity = std::max(known->second->last_activity, at);
  }
}

void Changes::count(const relay::KeyId& key, std::uint32_t counter, WallTime now) {
  Counter& known = counters[key];
  known.value = std::max(known.value, counter);
  known.used = std::max(known.used, now);
}

void Changes::sweep_later(Sweep what) {
  if (sweep) {
    what.rooms_before = std::max(what.rooms_before, sweep->rooms_before);
    what.counters_before = std::max(what.counters_before, sweep->counters_before);
  }
  sweep = what;
}

void Changes::sweep_here(const Sweep& what) {
  std::erase_if(rooms, [&](const auto& r) { return !r.second || r.second->last_activity < what.rooms_before; });
  std::erase_if(counters, [&](const auto& c) { return c.second.used < what.counters_before; });
}

void Changes::bound(std::size_t limit) {
  // A wipe that is still to be done counts as new: forgetting it would bring the room back.
  keep_latest(rooms, limit, [](const auto& room) { return room ? room->last_activity : WallTime::max(); });
  keep_latest(touches, limit, [](WallTime at) { return at; });
  keep_latest(counters, limit, [](const Counter& c) { return c.used; });
}

bool Changes::empty() const noexcept { return size() == 0 && wiped_buckets.empty() && !floor && !egress && !sweep; }
std::size_t Changes::size() const noexcept { return rooms.size() + touches.size() + counters.size(); }

}  // namespace tandem::state
