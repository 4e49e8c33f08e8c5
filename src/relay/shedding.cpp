// What belongs to the whole box: memory pressure, the monthly budget, retention, a reload.
#include "impl.hpp"

#include <algorithm>

namespace tandem::relay {
namespace {

constexpr Duration kEgressCheck = seconds(1);  // so that what is stored is at most 2 s late

// Often enough that nothing outlives its time by much, seldom enough to cost nothing.
Duration sweep_interval(Duration established_idle) {
  return std::clamp<Duration>(established_idle / 4, seconds(1), std::chrono::hours(1));
}

}  // namespace

void Relay::Impl::on(const event::PressureSampled& e) {
  const bool was_shedding = shedder.refuses_rooms();
  const bool changed =
      shedder.sample(e.percent, settings.shed_above_percent, settings.shed_resume_below_percent, now.mono);
  if (was_shedding != shedder.refuses_rooms()) {
    observer.observe(observed::SheddingChanged{shedder.refuses_rooms(), e.percent});
  }
  if (!changed) return;
  victims = {};
  if (shedder.stage() == Shedder::Stage::close_pending) {
    std::vector<RoomName> rooms;
    registry.for_each([&](const Entry& entry) {
      if (entry.room.pending_count() > 0) rooms.push_back(entry.room.name());
    });
    for (const RoomName& name : rooms) {
      in_room(*registry.find(name), [](room::Room& r, room::Turn& t) { r.close_pending(CloseReason::shedding, t); });
    }
  } else if (shedder.stage() == Shedder::Stage::close_rooms) {
    std::vector<Victim> all;
    registry.for_each([&](const Entry& entry) {
      if (entry.counted != RoomState::empty) all.push_back({entry.room.idle_since(), entry.serial, entry.room.name()});
    });
    victims = decltype(victims){std::greater<>{}, std::move(all)};
  }
}

void Relay::Impl::advance_shedding() {
  if (shedder.next_room(now.mono) > now.mono) return;
  while (!victims.empty()) {
    Victim v = victims.top();
    victims.pop();
    Entry* entry = registry.find(v.room);
    if (!entry || entry->counted == RoomState::empty || entry->serial != v.serial) continue;
    if (entry->room.idle_since() != v.idle_since) {  // it was used since: it goes back in line
      v.idle_since = entry->room.idle_since();
      victims.push(v);
      continue;
    }
    in_room(*entry, [](room::Room& r, room::Turn& t) { r.close_all(CloseReason::shedding, t); });
    break;
  }
  shedder.room_closed(now.mono);
}

void Relay::Impl::on(const event::EgressLoaded& e) {
  egress.restore(e.month, e.bytes);
  egress_stored = egress.bytes();
}

void Relay::Impl::on(const event::SettingsChanged& e) {
  adopt_settings(e.settings);
  next_sweep = std::min(next_sweep, now.mono + sweep_interval(settings.established_idle));
  std::vector<RoomName> rooms;
  registry.for_each([&](const Entry& entry) { rooms.push_back(entry.room.name()); });
  for (const RoomName& name : rooms) settle(*registry.find(name));
}

void Relay::Impl::advance_housekeeping() {
  const bool sweep = next_sweep <= now.mono;
  if (sweep || next_egress_check <= now.mono) {
    egress.tick(believed.now(), settings.egress_per_month, observer);
    if (egress.bytes() != egress_stored) {
      egress_stored = egress.bytes();
      emit(effect::StoreEgress{egress.month(), egress.bytes()});
    }
    // With nobody admitted nothing is relayed: an idle box sleeps.
    next_egress_check = registry.census().admitted_sockets > 0 ? now.mono + kEgressCheck : kNever;
  }
  if (sweep) {
    next_sweep = now.mono + sweep_interval(settings.established_idle);
    const WallTime wall = believed.now();
    emit(effect::SweepIdle{wall - std::chrono::ceil<seconds>(settings.established_idle), wall});
    upgrade_rate.purge(now.mono);
    attest_rate.purge(now.mono);
    quotas.purge(now.mono);
  }
}

void Relay::Impl::watch_egress() { next_egress_check = std::min(next_egress_check, now.mono + kEgressCheck); }

}  // namespace tandem::relay
