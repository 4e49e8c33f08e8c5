#include "tandem/relay/relay.hpp"

#include "impl.hpp"

#include <cassert>
#include <type_traits>

namespace tandem::relay {
namespace {

#ifdef TANDEM_SANITIZED
// Beyond these, checking everything after every call would be all that a test does.
constexpr std::size_t kCheckedRooms = 64, kCheckedBuckets = 2048;
#endif

SipKey random_key(RandomSource& random) {
  std::array<std::uint8_t, 16> bytes;
  random.fill(bytes);
  SipKey key;
  std::memcpy(&key.k0, bytes.data(), 8);
  std::memcpy(&key.k1, bytes.data() + 8, 8);
  return key;
}

room::Policy policy_of(const Settings& s) {
  return {"https://" + s.hostname, s.attest_required, s.admission, s.rendezvous, s.established_idle, s.meter};
}

}  // namespace

Relay::Impl::Impl(Settings s, RandomSource& r, Observer& o)
    : settings(std::move(s)),
      policy(policy_of(settings)),
      random(r),
      observer(o),
      registry(random_key(r)),
      quotas(random_key(r)),
      sockets_of_client(0, KeyedHash{random_key(r)}),
      upgrade_rate(random_key(r)),
      attest_rate(random_key(r)),
      loads(0, KeyedHash{random_key(r)}),
      waiting_in_room(0, KeyedHash{random_key(r)}),
      keys(random_key(r)),
      ownership(settings.hostname, settings.resolved),
      drain(settings.drain_delay, settings.eviction_rate) {}

void Relay::Impl::begin(Now at) {
  assert(at.mono >= now.mono);
  now = at;
  believed.observe(at);
  effects.clear();
}

void Relay::Impl::dispatch(const Event& event) {
  std::visit([this](const auto& e) { on(e); }, event);
}

// Rooms whose deadlines have come, then what belongs to the whole host.
void Relay::Impl::advance() {
  while (Entry* entry = registry.next_due(now.mono)) {
    in_room(*entry, [](room::Room& r, room::Turn& t) { r.advance(t); });
  }
  advance_drain();
  advance_shedding();
  advance_requests();
  advance_housekeeping();
}

TimePoint Relay::Impl::next_deadline() const {
  const TimePoint next_request = expected.empty() ? kNever : expected.front().first + settings.request;
  return std::min({registry.next_deadline(), drain.next_deadline(), shedder.next_room(now.mono), next_egress_check,
                   next_sweep, wipe_foreign_at, next_request});
}

Entry& Relay::Impl::room_of(const RoomName& name) {
  if (Entry* known = registry.find(name)) return *known;
  Entry& entry = registry.get(name, policy);
  if (const auto quota = quotas.recall(name)) entry.room.resume_quota(*quota);
  return entry;
}

room::Turn Relay::Impl::turn_for(const RoomName& name) {
  return {policy, random, observer, *this, now, believed.now(), owns(name)};
}

// What follows from a room's new state for everybody else: census, deadline, drain, memory.
void Relay::Impl::settle(Entry& entry) {
  const bool had_sockets = entry.counted != RoomState::empty;
  registry.settle(entry, entry.room.next_deadline(policy));
  assert(entry.room.is_consistent());
  if (entry.counted != RoomState::empty) return;
  const Bucket bucket = entry.room.name().bucket();
  if (had_sockets && draining_rooms.erase(entry.serial) > 0) {
    drain.room_left(bucket, shard::RoomSerial{entry.serial});
    end_drain_if_empty();
    if (wait_ended[bucket.value]) return forget(entry);
  }
  if (entry.busy > 0 || !entry.room.is_forgettable()) return;
  if (entry.room.quota_runs(now.mono)) quotas.remember(entry.room.name(), entry.room.meter());
  registry.erase(entry);
}

// Last in every call: nobody holds an entry any more.
Effects Relay::Impl::finish() {
  while (Entry* oldest = registry.overflow()) {
    if (oldest->room.quota_runs(now.mono)) quotas.remember(oldest->room.name(), oldest->room.meter());
    registry.erase(*oldest);
  }
  while (!expected.empty() && !is_expected(expected.front().second)) expected.pop_front();
#ifdef TANDEM_SANITIZED
  assert(registry.size() > kCheckedRooms || drain.buckets() > kCheckedBuckets || is_consistent());
#endif
  return std::exchange(effects, {});
}

void Relay::Impl::adopt_settings(Settings s) {
  settings = std::move(s);
  policy = policy_of(settings);
  drain.set_rate(settings.eviction_rate);
  drain.set_delay(settings.drain_delay);
}

// ---------------------------------------------------------------- the façade

Relay::Relay(Settings settings, RandomSource& random, Observer& observer)
    : impl_(std::make_unique<Impl>(std::move(settings), random, observer)) {}
Relay::~Relay() = default;

Effects Relay::handle(const Event& event, Now now) {
  impl_->begin(now);
  impl_->dispatch(event);
  return impl_->finish();
}

Effects Relay::advance(Now now) {
  impl_->begin(now);
  impl_->advance();
  return impl_->finish();
}

TimePoint Relay::next_deadline() const { return impl_->next_deadline(); }

MapOutcome Relay::last_map_outcome() const { return impl_->map_outcome; }

void Relay::count_egress(std::uint64_t bytes) noexcept { impl_->egress.count(bytes); }

OwnerCheck Relay::check_owner(const RoomName& room) const {
  if (impl_->owns(room)) return {};
  return {false, std::string(impl_->ownership.owner_of(room.bucket()))};
}

Charge Relay::charge(RequestKind kind, const RoomName& room, const ClientKey& client, Now now) {
  impl_->begin(now);
  return impl_->charge(kind, room, client);
}

Snapshot Relay::snapshot(Now now) const { return impl_->snapshot(now); }
Explanation Relay::explain(const RoomName& room, Now now) const { return impl_->explain(room, now); }
bool Relay::is_consistent() const { return impl_->is_consistent(); }

}  // namespace tandem::relay
