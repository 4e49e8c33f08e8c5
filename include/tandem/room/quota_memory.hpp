// The daily quotas of rooms that are empty: all that outlives a room's sockets for hours, so it is kept small and apart
// (1-wire 1.5). Bounded: over the bound the quota that has rested longest is forgotten. Rooms' names cost nothing to
// make up, so a quota restrains a pairing, not an attacker, and forgetting one early harms nobody.
#pragma once

#include "tandem/core/siphash.hpp"
#include "tandem/room/hooked_list.hpp"
#include "tandem/room/meter.hpp"

#include <optional>
#include <unordered_map>

namespace tandem::room {

class QuotaMemory {
 public:
  static constexpr std::size_t kRooms = 16384;  // about 2 MiB

  explicit QuotaMemory(SipKey key, std::size_t max_rooms = kRooms)
      : max_rooms_(max_rooms), quotas_(0, KeyedHash{key}) {}

  void remember(const RoomName& room, const Meter& meter);          // precondition: not remembered already
  [[nodiscard]] std::optional<Meter> recall(const RoomName& room);  // and forgets it here
  [[nodiscard]] const Meter* find(const RoomName& room) const;
  void purge(TimePoint now);  // windows that are over; O(rooms)
  template <class F>
  void forget_if(F&& moved) {  // moved(RoomName); O(rooms)
    for (auto it = quotas_.begin(); it != quotas_.end();) {
      it = moved(it->first) ? forget(it) : std::next(it);
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return quotas_.size(); }

 private:
  struct Quota {
    Meter meter;
    const RoomName* room = nullptr;  // the key of its own entry
    ListHook<Quota> order;
  };
  using Quotas = std::unordered_map<RoomName, Quota, KeyedHash>;

  Quotas::iterator forget(Quotas::iterator it);

  std::size_t max_rooms_;
  Quotas quotas_;
  HookedList<Quota, &Quota::order> order_;  // who has rested longest comes first
};

}  // namespace tandem::room
