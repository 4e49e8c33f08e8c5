#include "tandem/room/registry.hpp"

#include <cassert>
#include <utility>

namespace tandem::room {

Registry::Registry(SipKey key, std::size_t max_resting) : rooms_(0, KeyedHash{key}), max_resting_(max_resting) {}
Registry::~Registry() = default;

Entry* Registry::find(const RoomName& name) {
  const auto it = rooms_.find(name);
  return it == rooms_.end() ? nullptr : it->second.get();
}

const Entry* Registry::find(const RoomName& name) const {
  const auto it = rooms_.find(name);
  return it == rooms_.end() ? nullptr : it->second.get();
}

Entry& Registry::get(const RoomName& name, const Policy& policy) {
  if (Entry* known = find(name)) return *known;
  auto owned = std::make_unique<Entry>(name, policy);
  Entry& entry = *owned;
  rooms_.emplace(name, std::move(owned));
  buckets_[name.bucket()].push_back(entry);
  ++census_.rooms[static_cast<std::size_t>(RoomState::empty)];
  return entry;
}

void Registry::settle(Entry& entry, TimePoint deadline) {
  const RoomState state = entry.room.state();
  if (entry.counted == RoomState::empty && state != RoomState::empty) {
    // A room is one with a socket: it is created now, whatever an earlier one has left behind.
    entry.serial = next_serial_++;
    BucketList& list = buckets_.at(entry.room.name().bucket());
    list.remove(entry);
    list.push_back(entry);
  }
  count(entry, state, entry.room.pending_count(), entry.room.admitted_count());
  set_deadline(entry, deadline);
  set_resting(entry, state == RoomState::empty && entry.busy == 0);
}

void Registry::erase(Entry& entry) {
  assert(entry.busy == 0);
  count(entry, RoomState::empty, 0, 0);
  --census_.rooms[static_cast<std::size_t>(RoomState::empty)];
  set_deadline(entry, kNever);
  set_resting(entry, false);
  leave_bucket(entry);
  const RoomName name = entry.room.name();  // the key must outlive the entry
  rooms_.erase(name);
}

Entry* Registry::overflow() { return resting_.size() > max_resting_ ? resting_.front() : nullptr; }

Entry* Registry::first_in(Bucket bucket) const {
  const auto it = buckets_.find(bucket);
  return it == buckets_.end() ? nullptr : it->second.front();
}

Entry* Registry::next_due(TimePoint now) const {
  return !heap_.empty() && heap_.front()->deadline_ <= now ? heap_.front() : nullptr;
}

void Registry::count(Entry& entry, RoomState state, std::size_t pending, std::size_t admitted) {
  --census_.rooms[static_cast<std::size_t>(entry.counted)];
  ++census_.rooms[static_cast<std::size_t>(state)];
  entry.counted = state;
  census_.pending_sockets += pending - entry.pending_counted_;
  census_.admitted_sockets += admitted - entry.admitted_counted_;
  entry.pending_counted_ = static_cast<std::uint16_t>(pending);
  entry.admitted_counted_ = static_cast<std::uint16_t>(admitted);
}

void Registry::set_resting(Entry& entry, bool rests) {
  if (entry.resting_ == rests) return;
  entry.resting_ = rests;
  if (rests) {
    resting_.push_back(entry);
  } else {
    resting_.remove(entry);
  }
}

void Registry::leave_bucket(Entry& entry) {
  const auto it = buckets_.find(entry.room.name().bucket());
  it->second.remove(entry);
  if (it->second.empty()) buckets_.erase(it);
}

// ---------------------------------------------------------------- deadlines: a binary heap that knows each entry's
// slot

void Registry::set_deadline(Entry& entry, TimePoint deadline) {
  if (entry.deadline_ == deadline) return;
  entry.deadline_ = deadline;
  if (deadline == kNever) {
    const std::uint32_t slot = std::exchange(entry.heap_slot_, Entry::kNotInHeap);
    Entry* last = heap_.back();
    heap_.pop_back();
    if (last == &entry) return;
    put(slot, last);
    sift_up(slot);
    sift_down(last->heap_slot_);
    return;
  }
  if (entry.heap_slot_ == Entry::kNotInHeap) {
    heap_.push_back(&entry);
    entry.heap_slot_ = static_cast<std::uint32_t>(heap_.size() - 1);
  }
  sift_up(entry.heap_slot_);
  sift_down(entry.heap_slot_);
}

void Registry::put(std::uint32_t slot, Entry* entry) noexcept {
  heap_[slot] = entry;
  entry->heap_slot_ = slot;
}

void Registry::sift_up(std::uint32_t slot) {
  while (slot > 0) {
    const std::uint32_t parent = (slot - 1) / 2;
    if (heap_[parent]->deadline_ <= heap_[slot]->deadline_) return;
    Entry* above = heap_[parent];
    put(parent, heap_[slot]);
    put(slot, above);
    slot = parent;
  }
}

void Registry::sift_down(std::uint32_t slot) {
  const auto n = static_cast<std::uint32_t>(heap_.size());
  for (;;) {
    std::uint32_t least = slot;
    for (const std::uint32_t child : {2 * slot + 1, 2 * slot + 2}) {
      if (child < n && heap_[child]->deadline_ < heap_[least]->deadline_) least = child;
    }
    if (least == slot) return;
    Entry* below = heap_[least];
    put(least, heap_[slot]);
    put(slot, below);
    slot = least;
  }
}

bool Registry::is_consistent() const {
  Census seen;
  std::size_t in_heap = 0, in_rest = 0, in_buckets = 0;
  for (const auto& [name, entry] : rooms_) {
    if (entry->room.name() != name || !entry->room.is_consistent()) return false;
    if (entry->counted != entry->room.state()) return false;
    ++seen.rooms[static_cast<std::size_t>(entry->counted)];
    seen.pending_sockets += entry->room.pending_count();
    seen.admitted_sockets += entry->room.admitted_count();
    if (entry->heap_slot_ != Entry::kNotInHeap) {
      ++in_heap;
      if (entry->heap_slot_ >= heap_.size() || heap_[entry->heap_slot_] != entry.get()) return false;
    }
    if (entry->resting_) ++in_rest;
    if (entry->resting_ != (entry->counted == RoomState::empty && entry->busy == 0)) return false;
  }
  for (std::uint32_t slot = 1; slot < heap_.size(); ++slot) {
    if (heap_[(slot - 1) / 2]->deadline_ > heap_[slot]->deadline_) return false;
  }
  for (const auto& [bucket, list] : buckets_) {
    in_buckets += list.size();
    for (const Entry* e = list.front(); e; e = BucketList::next(*e)) {
      if (e->room.name().bucket() != bucket) return false;
    }
  }
  return seen.rooms == census_.rooms && seen.pending_sockets == census_.pending_sockets &&
         seen.admitted_sockets == census_.admitted_sockets && in_heap == heap_.size() && in_rest == resting_.size() &&
         in_buckets == rooms_.size();
}

}  // namespace tandem::room
