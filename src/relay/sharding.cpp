// Maps, and what they move: ownership, the drain, and the forgetting of what moved (2-sharding 2.4, 2.5).
#include "impl.hpp"

#include <cassert>

namespace tandem::relay {
namespace {

MapOutcome::Kind outcome_of(shard::Adoption a) {
  switch (a) {
    case shard::Adoption::adopted: return MapOutcome::Kind::adopted;
    case shard::Adoption::same: return MapOutcome::Kind::same;
    case shard::Adoption::older: return MapOutcome::Kind::older;
    case shard::Adoption::equal_differs: return MapOutcome::Kind::equal_differs;
  }
  return MapOutcome::Kind::same;
}

}  // namespace

void Relay::Impl::on(const event::FloorLoaded& e) { ownership.set_floor(e.floor); }

void Relay::Impl::on(const event::MapReceived& e) {
  if (e.map.get() == ownership.map()) {  // a poll that found nothing new costs nothing
    map_outcome.kind = MapOutcome::Kind::same;
    return;
  }
  const bool first = !ownership.has_map();
  shard::OwnershipDiff diff;
  map_outcome.kind = outcome_of(ownership.adopt(e.map, diff));
  const MapVersion version = e.map->version();
  if (map_outcome.kind != MapOutcome::Kind::adopted) {
    if (map_outcome.kind != MapOutcome::Kind::same) {
      observer.observe(observed::MapIgnored{version, map_outcome.kind == MapOutcome::Kind::older});
    }
    return;
  }
  emit(effect::StoreFloor{ownership.floor()});
  if (first) wipe_foreign_at = now.mono + settings.drain_delay;

  const std::uint64_t rooms_before = drain.rooms_left();
  for (const Bucket b : diff.acquired) reacquire(b);
  for (const Bucket b : diff.relinquished) relinquish(b);
  for (const Bucket b : diff.owner_changed) {
    if (!drain.is_draining(b)) continue;
    drain.owner_changed(b, !ownership.owner_of(b).empty(), now.mono);
    wait_ended[b.value] = false;
  }
  const auto size = [](const std::vector<Bucket>& v) { return static_cast<std::uint32_t>(v.size()); };
  observer.observe(observed::MapAdopted{version, ownership.owned_count(), size(diff.acquired), size(diff.relinquished),
                                        drain.rooms_left(), ownership.owned_count() == 0});
  if (drain.rooms_left() > rooms_before) {
    if (!drain_active) evicted_in_drain = 0;
    drain_active = true;
    const auto end = drain.expected_end(now.mono);
    observer.observe(observed::DrainStarted{drain.buckets_with_rooms(), drain.rooms_left(),
                                            end ? *end - now.mono : Duration::zero()});
  }
  end_drain_if_empty();
}

void Relay::Impl::relinquish(Bucket bucket) {
  std::vector<shard::RoomSerial> live;
  for (Entry* entry = registry.first_in(bucket); entry;) {
    Entry* const next = room::Registry::next_in(*entry);
    refuse_waiting(entry->room.name());
    const bool stays = entry->room.admitted_count() > 0;
    if (stays) {
      live.push_back({entry->serial});
      draining_rooms.emplace(entry->serial, entry);
    }
    in_room(*entry, [](room::Room& r, room::Turn& t) { r.close_pending(CloseReason::reshard, t); });
    entry = next;
  }
  wait_ended[bucket.value] = false;
  drain.relinquish(bucket, live, !ownership.owner_of(bucket).empty(), now.mono);
}

void Relay::Impl::reacquire(Bucket bucket) {
  if (draining_rooms.empty() && !wait_ended[bucket.value] && !drain.is_draining(bucket)) return;
  for (Entry* entry = registry.first_in(bucket); entry; entry = room::Registry::next_in(*entry)) {
    draining_rooms.erase(entry->serial);
    // Its stored verifier went when the wait ended, but the room itself was never evicted: it stays after all.
    if (wait_ended[bucket.value] && entry->room.registration()) {
      const room::Registration& r = *entry->room.registration();
      ++entry->busy;
      writes[++last_write_id] = {{}, entry->room.name(), Endpoint::register_};
      emit(effect::StoreRoom{
          last_write_id, entry->room.name(), {r.verifier, r.registrant, r.last_contact}, std::nullopt});
      settle(*entry);
    }
  }
  wait_ended[bucket.value] = false;
  drain.reacquire(bucket);
}

void Relay::Impl::advance_drain() {
  std::vector<Bucket> ended;
  while (const auto bucket = drain.next_ended_wait(now.mono)) {
    ended.push_back(*bucket);
    wait_ended[bucket->value] = true;
    for (Entry* entry = registry.first_in(*bucket); entry;) {
      Entry* const next = room::Registry::next_in(*entry);
      if (entry->counted == RoomState::empty) forget(*entry);
      entry = next;
    }
  }
  if (!ended.empty()) {
    quotas.forget_if([&](const RoomName& room) { return wait_ended[room.bucket().value]; });
    emit(effect::WipeBuckets{std::move(ended)});
  }
  while (const auto eviction = drain.next_eviction(now.mono)) {
    const auto it = draining_rooms.find(eviction->room.value);
    assert(it != draining_rooms.end());
    Entry& entry = *it->second;
    draining_rooms.erase(it);
    evict(entry);
  }
  end_drain_if_empty();
  if (wipe_foreign_at <= now.mono) wipe_foreign_buckets();
}

void Relay::Impl::evict(Entry& entry) {
  observer.observe(observed::RoomEvicted{entry.room.name(), drain.rooms_left()});
  ++evicted_in_drain;
  ++entry.busy;  // it must not go before it is forgotten
  in_room(entry, [](room::Room& r, room::Turn& t) { r.close_all(CloseReason::reshard, t); });
  --entry.busy;
  emit(effect::WipeRoom{0, entry.room.name()});
  forget(entry);
}

void Relay::Impl::forget(Entry& entry) {
  entry.room.forget(policy);
  registry.settle(entry, kNever);
  if (entry.busy == 0) registry.erase(entry);
}

void Relay::Impl::end_drain_if_empty() {
  if (!drain_active || drain.rooms_left() > 0) return;
  drain_active = false;
  observer.observe(observed::DrainEnded{evicted_in_drain});
}

// Rooms that an earlier run stored and whose bucket was lost while this host was down, or before it could forget them.
void Relay::Impl::wipe_foreign_buckets() {
  wipe_foreign_at = kNever;
  std::vector<Bucket> foreign;
  for (std::uint32_t b = 0; b < kBucketCount; ++b) {
    const Bucket bucket{static_cast<std::uint16_t>(b)};
    if (!ownership.owns(bucket) && !drain.is_draining(bucket) && !ownership.owner_of(bucket).empty())
      foreign.push_back(bucket);
  }
  if (!foreign.empty()) emit(effect::WipeBuckets{std::move(foreign)});
}

}  // namespace tandem::relay
