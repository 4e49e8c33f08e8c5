// Rooms wait in one heap ordered by (deadline, age). Entries are never searched for: one that no longer says the truth
// (its room left, or its bucket's wait started again) is dropped when it reaches the top, and the heap is rebuilt when
// most of it is stale, so that a flapping map cannot make it grow.
#include "tandem/shard/drain_queue.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

namespace tandem::shard {

namespace {

struct RoomEntry {
  TimePoint deadline;
  RoomSerial room;
  Bucket bucket;
};
struct WaitEntry {
  TimePoint deadline;
  Bucket bucket;
};
// std::push_heap keeps the largest on top: these order the other way round.
bool later(const RoomEntry& a, const RoomEntry& b) {
  return std::pair(a.deadline, a.room) > std::pair(b.deadline, b.room);
}
bool later_wait(const WaitEntry& a, const WaitEntry& b) {
  return std::pair(a.deadline, a.bucket) > std::pair(b.deadline, b.bucket);
}

struct BucketState {
  TimePoint deadline = kNever;  // kNever while nobody owns it
  bool wait_reported = false;
  std::vector<RoomSerial> rooms;  // ascending
};

constexpr Duration kLongest = std::chrono::hours(24 * 365 * 100);  // sums of a few of these do not overflow

Duration interval_of(double rooms_per_second) {
  assert(rooms_per_second > 0);
  const double ns = 1e9 / rooms_per_second;
  return ns >= static_cast<double>(kLongest.count()) ? kLongest : std::max(Duration{1}, Duration{std::llround(ns)});
}

}  // namespace

struct DrainQueue::Impl {
  Duration delay;
  Duration interval;
  std::unordered_map<Bucket, BucketState> buckets;
  std::vector<RoomEntry> room_heap;
  std::vector<WaitEntry> wait_heap;
  std::map<TimePoint, std::uint64_t>
      rooms_at;           // queued rooms by deadline: as many entries as maps are being waited for
  TimePoint last_slot{};  // when the last eviction was to be; meaningless unless evicted_any
  bool evicted_any = false;
  std::uint64_t rooms = 0;
  std::uint32_t buckets_with_rooms = 0;

  // A loop that is a little late must not lower the rate, one that is very late must not catch up in a burst: lateness
  // up to this much is made good by the next slot. Below a whole interval, any second still sees at most rate + 1.
  [[nodiscard]] Duration slack() const { return interval >= milliseconds(10) ? interval / 4 : interval - Duration{1}; }

  [[nodiscard]] TimePoint slot_for(TimePoint deadline) const {
    return evicted_any ? std::max(deadline, last_slot + interval) : deadline;
  }

  [[nodiscard]] bool is_true(const RoomEntry& e) const {
    const auto it = buckets.find(e.bucket);
    return it != buckets.end() && it->second.deadline == e.deadline &&
           std::binary_search(it->second.rooms.begin(), it->second.rooms.end(), e.room);
  }
  [[nodiscard]] bool is_true(const WaitEntry& e) const {
    const auto it = buckets.find(e.bucket);
    return it != buckets.end() && it->second.deadline == e.deadline && !it->second.wait_reported;
  }

  void count(TimePoint deadline, std::size_t n) {
    if (n > 0) rooms_at[deadline] += n;
  }
  void uncount(TimePoint deadline, std::size_t n) {
    if (n == 0) return;
    const auto it = rooms_at.find(deadline);
    assert(it != rooms_at.end() && it->second >= n);
    if ((it->second -= n) == 0) rooms_at.erase(it);
  }

  void schedule(Bucket bucket, const BucketState& state) {
    if (state.deadline == kNever) return;
    for (const RoomSerial room : state.rooms) {
      room_heap.push_back({state.deadline, room, bucket});
      std::push_heap(room_heap.begin(), room_heap.end(), later);
    }
    wait_heap.push_back({state.deadline, bucket});
    std::push_heap(wait_heap.begin(), wait_heap.end(), later_wait);
  }

  void restart(Bucket bucket, BucketState& state, bool has_owner, TimePoint now) {
    uncount(state.deadline, state.rooms.size());
    state.deadline = has_owner ? now + delay : kNever;
    state.wait_reported = false;
    count(state.deadline, state.rooms.size());
    schedule(bucket, state);
  }

  void forget(std::unordered_map<Bucket, BucketState>::iterator it) {
    uncount(it->second.deadline, it->second.rooms.size());
    rooms -= it->second.rooms.size();
    if (!it->second.rooms.empty()) --buckets_with_rooms;
    buckets.erase(it);
  }

  // Takes one room out of its bucket; the bucket goes with its last room once its wait was reported.
  void take(std::unordered_map<Bucket, BucketState>::iterator it, std::vector<RoomSerial>::iterator room) {
    BucketState& state = it->second;
    state.rooms.erase(room);
    uncount(state.deadline, 1);
    --rooms;
    if (!state.rooms.empty()) return;
    --buckets_with_rooms;
    if (state.wait_reported) buckets.erase(it);
  }

  // Leaves a true entry (or nothing) on top of each heap, so that next_deadline() need only look.
  void prune() {
    if (room_heap.size() > 2 * rooms + 64 || wait_heap.size() > 2 * buckets.size() + 64) rebuild();
    while (!room_heap.empty() && !is_true(room_heap.front())) pop_room();
    while (!wait_heap.empty() && !is_true(wait_heap.front())) pop_wait();
  }
  void rebuild() {
    room_heap.clear();
    wait_heap.clear();
    for (const auto& [bucket, state] : buckets) {
      if (state.deadline == kNever) continue;
      for (const RoomSerial room : state.rooms) room_heap.push_back({state.deadline, room, bucket});
      if (!state.wait_reported) wait_heap.push_back({state.deadline, bucket});
    }
    std::make_heap(room_heap.begin(), room_heap.end(), later);
    std::make_heap(wait_heap.begin(), wait_heap.end(), later_wait);
  }
  void pop_room() {
    std::pop_heap(room_heap.begin(), room_heap.end(), later);
    room_heap.pop_back();
  }
  void pop_wait() {
    std::pop_heap(wait_heap.begin(), wait_heap.end(), later_wait);
    wait_heap.pop_back();
  }
};

DrainQueue::DrainQueue(Duration delay, double rooms_per_second) : impl_(std::make_unique<Impl>()) {
  impl_->delay = delay;
  impl_->interval = interval_of(rooms_per_second);
}
DrainQueue::~DrainQueue() = default;

void DrainQueue::set_rate(double rooms_per_second) { impl_->interval = interval_of(rooms_per_second); }
void DrainQueue::set_delay(Duration delay) { impl_->delay = delay; }

void DrainQueue::relinquish(Bucket bucket, std::span<const RoomSerial> rooms, bool has_owner, TimePoint now) {
  if (const auto old = impl_->buckets.find(bucket); old != impl_->buckets.end()) impl_->forget(old);
  BucketState& state = impl_->buckets[bucket];
  state.rooms.assign(rooms.begin(), rooms.end());
  std::sort(state.rooms.begin(), state.rooms.end());
  impl_->rooms += state.rooms.size();
  if (!state.rooms.empty()) ++impl_->buckets_with_rooms;
  impl_->count(kNever, state.rooms.size());
  impl_->restart(bucket, state, has_owner, now);
  impl_->prune();
}

void DrainQueue::owner_changed(Bucket bucket, bool has_owner, TimePoint now) {
  const auto it = impl_->buckets.find(bucket);
  if (it == impl_->buckets.end()) return;
  impl_->restart(bucket, it->second, has_owner, now);
  impl_->prune();
}

void DrainQueue::reacquire(Bucket bucket) {
  const auto it = impl_->buckets.find(bucket);
  if (it == impl_->buckets.end()) return;
  impl_->forget(it);
  impl_->prune();
}

void DrainQueue::room_left(Bucket bucket, RoomSerial room) {
  const auto it = impl_->buckets.find(bucket);
  if (it == impl_->buckets.end()) return;
  auto& rooms = it->second.rooms;
  const auto at = std::lower_bound(rooms.begin(), rooms.end(), room);
  if (at == rooms.end() || *at != room) return;
  impl_->take(it, at);
  impl_->prune();
}

std::optional<DrainQueue::Eviction> DrainQueue::next_eviction(TimePoint now) {
  if (impl_->room_heap.empty()) return {};
  const RoomEntry entry = impl_->room_heap.front();
  const TimePoint slot = impl_->slot_for(entry.deadline);
  if (slot > now) return {};
  impl_->pop_room();
  impl_->last_slot = std::max(slot, now - impl_->slack());
  impl_->evicted_any = true;
  const auto it = impl_->buckets.find(entry.bucket);
  impl_->take(it, std::lower_bound(it->second.rooms.begin(), it->second.rooms.end(), entry.room));
  impl_->prune();
  return Eviction{entry.bucket, entry.room};
}

std::optional<Bucket> DrainQueue::next_ended_wait(TimePoint now) {
  if (impl_->wait_heap.empty() || impl_->wait_heap.front().deadline > now) return {};
  const Bucket bucket = impl_->wait_heap.front().bucket;
  impl_->pop_wait();
  const auto it = impl_->buckets.find(bucket);
  if (it->second.rooms.empty()) {
    impl_->buckets.erase(it);
  } else {
    it->second.wait_reported = true;
  }
  impl_->prune();
  return bucket;
}

TimePoint DrainQueue::next_deadline() const {
  TimePoint next = kNever;
  if (!impl_->room_heap.empty()) next = impl_->slot_for(impl_->room_heap.front().deadline);
  if (!impl_->wait_heap.empty()) next = std::min(next, impl_->wait_heap.front().deadline);
  return next;
}

bool DrainQueue::is_draining(Bucket bucket) const { return impl_->buckets.contains(bucket); }
std::uint64_t DrainQueue::rooms_left() const noexcept { return impl_->rooms; }
std::size_t DrainQueue::buckets() const noexcept { return impl_->buckets.size(); }
std::uint32_t DrainQueue::buckets_with_rooms() const noexcept { return impl_->buckets_with_rooms; }

std::optional<TimePoint> DrainQueue::expected_end(TimePoint now) const {
  if (impl_->rooms == 0 || impl_->rooms_at.contains(kNever)) return {};
  TimePoint end{};
  bool first = true;
  for (const auto& [deadline, rooms] : impl_->rooms_at) {
    const TimePoint slot = first ? std::max(now, impl_->slot_for(deadline)) : std::max(end + impl_->interval, deadline);
    const auto gaps = static_cast<Duration::rep>(rooms - 1);
    if (gaps > 0 && impl_->interval > kLongest / gaps) return now + kLongest;
    end = slot + impl_->interval * gaps;
    first = false;
  }
  return end;
}

bool DrainQueue::is_consistent() const {
  std::uint64_t rooms = 0, scheduled = 0;
  std::uint32_t with_rooms = 0, waits = 0;
  std::map<TimePoint, std::uint64_t> at;
  for (const auto& [bucket, state] : impl_->buckets) {
    rooms += state.rooms.size();
    if (state.deadline != kNever) scheduled += state.rooms.size();
    if (!state.rooms.empty()) {
      ++with_rooms;
      at[state.deadline] += state.rooms.size();
    }
    if (state.deadline != kNever && !state.wait_reported) ++waits;
    if (state.wait_reported && (state.rooms.empty() || state.deadline == kNever)) return false;
    if (!std::is_sorted(state.rooms.begin(), state.rooms.end())) return false;
  }
  const auto true_rooms =
      std::count_if(impl_->room_heap.begin(), impl_->room_heap.end(), [&](auto& e) { return impl_->is_true(e); });
  const auto true_waits =
      std::count_if(impl_->wait_heap.begin(), impl_->wait_heap.end(), [&](auto& e) { return impl_->is_true(e); });
  return rooms == impl_->rooms && with_rooms == impl_->buckets_with_rooms && at == impl_->rooms_at &&
         static_cast<std::uint64_t>(true_rooms) >= scheduled && static_cast<std::uint64_t>(true_waits) >= waits &&
         (impl_->room_heap.empty() || impl_->is_true(impl_->room_heap.front())) &&
         (impl_->wait_heap.empty() || impl_->is_true(impl_->wait_heap.front()));
}

}  // namespace tandem::shard
