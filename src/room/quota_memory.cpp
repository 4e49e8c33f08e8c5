#include "tandem/room/quota_memory.hpp"

#include <cassert>

namespace tandem::room {

void QuotaMemory::remember(const RoomName& room, const Meter& meter) {
  if (quotas_.size() >= max_rooms_) forget(quotas_.find(*order_.front()->room));
  const auto [it, is_new] = quotas_.emplace(room, Quota{meter, nullptr, {}});
  assert(is_new);
  static_cast<void>(is_new);
  it->second.room = &it->first;
  order_.push_back(it->second);
}

std::optional<Meter> QuotaMemory::recall(const RoomName& room) {
  const auto it = quotas_.find(room);
  if (it == quotas_.end()) return std::nullopt;
  const Meter meter = it->second.meter;
  forget(it);
  return meter;
}

const Meter* QuotaMemory::find(const RoomName& room) const {
  const auto it = quotas_.find(room);
  return it == quotas_.end() ? nullptr : &it->second.meter;
}

void QuotaMemory::purge(TimePoint now) {
  for (auto it = quotas_.begin(); it != quotas_.end();) {
    it = it->second.meter.window_end() <= now ? forget(it) : std::next(it);
  }
}

QuotaMemory::Quotas::iterator QuotaMemory::forget(Quotas::iterator it) {
  order_.remove(it->second);
  return quotas_.erase(it);
}

}  // namespace tandem::room
