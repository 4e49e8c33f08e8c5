// Looking at the relay: counts for metrics, the reasons for tandemctl explain, and the cross-references that must hold.
#include "impl.hpp"

namespace tandem::relay {
namespace {

std::string_view name_of(RoomState s) {
  switch (s) {
    case RoomState::empty: return "none";
    case RoomState::pending: return "pending";
    case RoomState::mac_only: return "mac_only";
    case RoomState::phone_only: return "phone_only";
    case RoomState::spliced: return "spliced";
  }
  return {};
}

}  // namespace

Snapshot Relay::Impl::snapshot(Now at) const {
  Snapshot s;
  const room::Census& census = registry.census();
  s.rooms = {census.of(RoomState::spliced), census.of(RoomState::mac_only), census.of(RoomState::phone_only),
             census.of(RoomState::pending)};
  s.sockets = {census.pending_sockets, census.admitted_sockets};
  s.resolved = settings.resolved;
  s.has_map = ownership.has_map();
  s.shedding = shedder.refuses_rooms();
  s.stopping = stopping;
  if (const shard::ShardMap* map = ownership.map()) s.version = map->version();
  s.floor = ownership.floor();
  s.owned_buckets = ownership.owned_count();
  s.owned_ranges = ownership.owned_ranges();
  s.draining.buckets = drain.buckets_with_rooms();
  s.draining.rooms = drain.rooms_left();
  if (s.draining.rooms > 0) {
    const auto left = [&](TimePoint t) { return std::max(Duration::zero(), t - at.mono); };
    if (drain.next_deadline() != kNever) s.draining.next_eviction = left(drain.next_deadline());
    if (const auto end = drain.expected_end(at.mono)) s.draining.expected_end = left(*end);
  }
  s.egress_bytes_month = egress.bytes();
  s.rooms_in_memory = registry.size() + quotas.size();
  return s;
}

Explanation Relay::Impl::explain(const RoomName& name, Now at) const {
  Explanation x;
  x.tag = name.tag();
  x.bucket = name.bucket();
  x.owner = ownership.owner_of(x.bucket);
  x.ours = ownership.owns(x.bucket);
  x.draining = drain.is_draining(x.bucket);
  const Entry* entry = registry.find(name);
  const room::Room* r = entry ? &entry->room : nullptr;
  x.state = name_of(r ? r->state() : RoomState::empty);
  x.known = r && r->knowledge() == room::Room::Knowledge::known;
  x.established = r && r->registration();

  std::vector<std::string> both;
  const auto add = [](std::vector<std::string>& to, std::string_view text) { to.emplace_back(text); };
  if (!x.ours) add(both, reject_text(RejectReason::misdirected));
  const bool creates_room = !r || r->state() == RoomState::empty;
  const bool rooms_full = settings.rooms && registry.census().live_rooms() >= *settings.rooms;
  if ((settings.sockets && sockets.size() >= *settings.sockets) ||
      (creates_room && (rooms_full || shedder.refuses_rooms() || egress.is_spent(settings.egress_per_month)))) {
    add(both, reject_text(RejectReason::capacity));
  }
  if (r && r->proofs_spent(at.mono)) add(both, close_text(CloseReason::rate_limited));
  if (x.established) add(both, close_text(CloseReason::signature_required));
  x.mac_refusals = x.phone_refusals = both;
  if (!x.established && settings.attest_required) add(x.phone_refusals, close_text(CloseReason::ticket_required));
  const room::Meter* meter = r ? &r->meter() : quotas.find(name);
  if (meter && meter->quota_spent(at.mono)) {
    x.quota_resets_in = std::max(Duration::zero(), meter->window_end() - at.mono);
    add(x.mac_refusals, close_text(CloseReason::daily_quota_exceeded));
    add(x.phone_refusals, close_text(CloseReason::daily_quota_exceeded));
  }
  if (!r || r->occupant(Role::mac).value == 0) add(x.phone_refusals, close_text(CloseReason::mac_offline));
  return x;
}

bool Relay::Impl::is_consistent() const {
  if (!registry.is_consistent() || !drain.is_consistent()) return false;
  const room::Census& census = registry.census();
  if (sockets.size() != census.pending_sockets + census.admitted_sockets) return false;
  std::unordered_map<ClientKey, std::uint32_t, KeyedHash> clients(0, KeyedHash{});
  for (const auto& [id, socket] : sockets) {
    ++clients[socket.client];
    if (registry.find(socket.entry->room.name()) != socket.entry) return false;
    const auto there = socket.entry->room.sockets();
    if (std::find(there.begin(), there.end(), id) == there.end()) return false;
  }
  if (clients.size() != sockets_of_client.size()) return false;
  for (const auto& [client, n] : clients) {
    const auto it = sockets_of_client.find(client);
    if (it == sockets_of_client.end() || it->second != n) return false;
  }

  bool good = true;
  std::unordered_map<RoomName, std::uint32_t> busy;
  for (const auto& [id, request] : waiting) {
    ++busy[request.room];
    const auto line = waiting_in_room.find(request.room);
    good = good && line != waiting_in_room.end() &&
           std::find(line->second.begin(), line->second.end(), id) != line->second.end();
  }
  for (const auto& [_, write] : writes) ++busy[write.room];
  std::uint64_t draining = 0;
  registry.for_each([&](const Entry& entry) {
    const RoomName& name = entry.room.name();
    const auto it = busy.find(name);
    good = good && entry.busy == (it == busy.end() ? 0 : it->second);
    good = good && !quotas.find(name);
    if (entry.room.knowledge() == room::Room::Knowledge::loading) good = good && loads.contains(name);
    const bool live = entry.counted != RoomState::empty;
    if (live &&
        !ownership.owns(name.bucket())) {  // let go of, not yet gone: it must be in the queue, with nobody knocking
      ++draining;
      good = good && entry.room.pending_count() == 0 && draining_rooms.contains(entry.serial);
    }
    if (!live && entry.busy == 0 && entry.room.next_deadline(policy) > now.mono) {
      good = good && !entry.room.is_forgettable();
    }
  });
  return good && draining == drain.rooms_left() && draining == draining_rooms.size() && drain_active == (draining > 0);
}

}  // namespace tandem::relay
