// All rooms in memory: by name (hashed with a key, for strangers choose the names), by bucket in the order they were
// created (so that an adoption touches only rooms that move), and by their next deadline. It also keeps the census that
// metrics read, and the line in which rooms without sockets wait to be forgotten.
//
// The registry owns its entries; a pointer is good until erase() or overflow() names it. Every change of a room ends in
// settle(). Costs: find, settle and erase O(1) plus O(log n) for a deadline that moved; first_in and next_in O(1).
#pragma once

#include "tandem/core/siphash.hpp"
#include "tandem/room/hooked_list.hpp"
#include "tandem/room/room.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tandem::room {

struct Entry {
  Entry(const RoomName& name, const Policy& policy) : room(name, policy) {}

  Room room;
  std::uint64_t serial = 0;  // given when the room got its first socket, ascending; 0: it never had one
  std::uint32_t busy = 0;    // requests and writes that will come back to this room: not to be forgotten before
  RoomState counted = RoomState::empty;

 private:
  friend class Registry;
  static constexpr std::uint32_t kNotInHeap = UINT32_MAX;

  bool resting_ = false;
  std::uint32_t heap_slot_ = kNotInHeap;
  std::uint16_t pending_counted_ = 0, admitted_counted_ = 0;
  TimePoint deadline_ = kNever;
  ListHook<Entry> in_bucket_, in_rest_;
};

struct Census {
  std::array<std::uint64_t, 5> rooms{};  // by RoomState
  std::uint64_t pending_sockets = 0, admitted_sockets = 0;

  [[nodiscard]] std::uint64_t of(RoomState s) const noexcept { return rooms[static_cast<std::size_t>(s)]; }
  // A room is one with a socket.
  [[nodiscard]] std::uint64_t live_rooms() const noexcept {
    return of(RoomState::pending) + of(RoomState::mac_only) + of(RoomState::phone_only) + of(RoomState::spliced);
  }
};

class Registry {
 public:
  static constexpr std::size_t kRestingRooms = 16384;  // without sockets: secrets, proofs of late

  explicit Registry(SipKey key, std::size_t max_resting = kRestingRooms);
  ~Registry();

  [[nodiscard]] Entry* find(const RoomName& name);
  [[nodiscard]] const Entry* find(const RoomName& name) const;
  [[nodiscard]] Entry& get(const RoomName& name, const Policy& policy);  // created where absent

  // After any change: census, deadline, place in line. `deadline`: when the room must be looked at again.
  void settle(Entry& entry, TimePoint deadline);
  void erase(Entry& entry);
  // The room that has rested longest, where too many rest; null where not.
  [[nodiscard]] Entry* overflow();

  [[nodiscard]] Entry* first_in(Bucket bucket) const;
  [[nodiscard]] static Entry* next_in(const Entry& entry) { return BucketList::next(entry); }

  [[nodiscard]] TimePoint next_deadline() const noexcept { return heap_.empty() ? kNever : heap_.front()->deadline_; }
  [[nodiscard]] Entry* next_due(TimePoint now) const;

  [[nodiscard]] const Census& census() const noexcept { return census_; }
  [[nodiscard]] std::size_t size() const noexcept { return rooms_.size(); }
  template <class F>
  void for_each(F&& f) {
    for (auto& [_, entry] : rooms_) f(*entry);
  }
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [_, entry] : rooms_) f(static_cast<const Entry&>(*entry));
  }
  [[nodiscard]] bool is_consistent() const;  // O(rooms)

 private:
  using BucketList = HookedList<Entry, &Entry::in_bucket_>;
  using RestList = HookedList<Entry, &Entry::in_rest_>;

  void count(Entry& entry, RoomState state, std::size_t pending, std::size_t admitted);
  void set_resting(Entry& entry, bool rests);
  void leave_bucket(Entry& entry);
  void set_deadline(Entry& entry, TimePoint deadline);
  void sift_up(std::uint32_t slot);
  void sift_down(std::uint32_t slot);
  void put(std::uint32_t slot, Entry* entry) noexcept;

  std::unordered_map<RoomName, std::unique_ptr<Entry>, KeyedHash> rooms_;
  std::unordered_map<Bucket, BucketList> buckets_;
  std::vector<Entry*> heap_;  // by deadline, the nearest first
  RestList resting_;
  std::size_t max_resting_;
  std::uint64_t next_serial_ = 1;
  Census census_;
};

}  // namespace tandem::room
