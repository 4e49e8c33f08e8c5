// A phase of a fleet run: a reshard followed to its end, and the verdict on what happened meanwhile.
#include "app/fleet_ground.hpp"
#include "tandem/net/clock.hpp"

#include <algorithm>

namespace tandem::app {

bool FleetGround::reshard(const std::string& title, const std::function<void()>& change,
                          const std::function<bool()>& settled) {
  const shard::ShardMap before = map();
  begin(title);
  change();
  const TimePoint published = net::monotonic_now();
  Duration longest{};
  for (const auto& relay : relays_) {
    const std::size_t rooms = moving_from(*relay, before);
    if (rooms == 0) continue;
    drains_.push_back({relay.get(), rooms});
    longest = std::max(longest, predicted(rooms));
    say(relay->hostname() + " loses " + std::to_string(rooms) + " rooms; from its adoption " +
        in_seconds(predicted(rooms)) + " are predicted");
  }
  const bool converged = wait(kFleetPatience + longest, [&] {
    bool over = !settled || settled();
    for (Drain& drain : drains_) over = follow(drain) && over;
    return over && all_whole() && all_hold_the_newest();
  });
  return end(published, converged);
}

bool FleetGround::follow(Drain& drain) const {
  const FleetRelay& relay = *drain.relay;
  if (relay.map_version() < version_) return false;
  if (drain.adopted_at == TimePoint{}) drain.adopted_at = relay.version_seen_at();
  const bool empty = relay.draining_rooms() == 0 && relay.draining_buckets() == 0;
  if (empty && drain.over_at == TimePoint{} && has_evicted()) drain.over_at = net::monotonic_now();
  return drain.over_at != TimePoint{};
}

// Those that stand: a room whose endpoints look for each other has nothing to be evicted.
std::size_t FleetGround::moving_from(const FleetRelay& relay, const shard::ShardMap& before) const {
  return static_cast<std::size_t>(std::count_if(pairings_.begin(), pairings_.end(), [&](const auto& pairing) {
    const Bucket bucket = pairing->bucket();
    return pairing->is_whole() && before.host_of(bucket) == relay.hostname() &&
           map().host_of(bucket) != relay.hostname();
  }));
}

Duration FleetGround::predicted(std::size_t rooms) const {
  return Duration(static_cast<Duration::rep>(
      (options_.drain_delay_seconds + static_cast<double>(rooms) / options_.eviction_rate) * 1e9));
}

void FleetGround::begin(const std::string& title) {
  say("== " + title);
  title_ = title;
  record_ = FleetRecord{};
  findings_ = FleetFindings{};
  drains_.clear();
}

bool FleetGround::end(TimePoint began, bool converged) {
  FleetPhase phase;
  phase.title = title_;
  phase.took = net::monotonic_now() - began;
  run_for(seconds(2));  // traffic over the new splices, so that a loss would show
  for (FleetAudit& audit : audits_) audit.read_on(maps_, rooms_, findings_);
  phase.record = record_;
  phase.findings = findings_;
  phase.pairings = pairings_.size();
  phase.back = whole();
  if (!converged) phase.trouble = first_trouble();
  for (const Drain& drain : drains_)
    phase.drains.push_back(
        {drain.relay->hostname(), drain.rooms, predicted(drain.rooms), drain.over_at - drain.adopted_at});
  print_phase(phase, options_.json);
  return converged && phase.back == phase.pairings && phase.record.lost == 0 && phase.findings.faults.empty();
}

}  // namespace tandem::app
