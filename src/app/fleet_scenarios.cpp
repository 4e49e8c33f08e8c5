#include "app/fleet_scenarios.hpp"

#include "tandem/net/clock.hpp"
#include "tandem/shard/map_diff.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tandem::app {
namespace {

constexpr Duration kShortPatience = seconds(60);
constexpr Duration kCopyLifetime = seconds(5);  // the max-age that the map is served with

bool is_in(const shard::ShardMap& map, const std::string& host) {
  return std::find(map.hosts().begin(), map.hosts().end(), host) != map.hosts().end();
}

bool add(FleetGround& ground) {
  return ground.reshard("add a host", [&] {
    for (const std::size_t i : {2u, 1u, 0u})
      if (!is_in(ground.map(), ground.relay(i).hostname()))
        return ground.publish(shard::add_host(ground.map(), ground.relay(i).hostname(), {}));
    throw std::runtime_error("add: every relay is in the map already");
  });
}

bool remove(FleetGround& ground) {
  return ground.reshard("drain a host to empty", [&] {
    ground.publish(shard::remove_host(ground.map(), ground.relay(1).hostname(), std::nullopt));
  });
}

bool rebalance(FleetGround& ground) {
  const auto balanced = [&] { return std::get<shard::Ranges>(shard::rebalance(ground.map())); };
  if (balanced() == ground.map().ranges() &&
      !ground.reshard("tilt the ring", [&] { ground.publish(ground.half_of_the_widest()); }))
    return false;
  return ground.reshard("rebalance", [&] { ground.publish(balanced()); });
}

bool kill(FleetGround& ground) {
  ground.begin("kill -9 a host and restart it");
  FleetRelay& victim = ground.relay(0);
  const Duration down(static_cast<Duration::rep>(ground.options().down_seconds * 1e9));
  ground.say("killing " + victim.hostname() + " with " + std::to_string(ground.rooms_at(victim)) + " rooms, back in " +
             in_seconds(down));
  const TimePoint killed = net::monotonic_now();
  victim.kill_hard();
  ground.run_for(down);
  victim.start();
  return ground.end(killed, ground.wait(kFleetPatience, [&] { return victim.is_ready() && ground.all_whole(); }));
}

// An edge that is behind hides a change and harms nobody; edges that disagree show it to some and take it from none.
// They disagree while the first rooms move and for two lifetimes of a copy more.
bool stale(FleetGround& ground) {
  std::optional<TimePoint> moving_since;
  return ground.reshard(
      "stale, then alternating copies of the map",
      [&] {
        ground.map_server().serve(FleetCopies::lagging);
        ground.publish(ground.half_of_the_widest());
        ground.run_for(2 * ground.poll() + seconds(1));
        if (ground.has_evicted()) ground.fault("a room was evicted for a map that no edge served");
        ground.map_server().serve(FleetCopies::alternating);
      },
      [&] {
        const TimePoint now = net::monotonic_now();
        const bool moving = ground.has_evicted() || !ground.moves_rooms();
        if (!moving_since && moving && ground.all_hold_the_newest()) moving_since = now;
        const bool over = moving_since && now - *moving_since > 2 * kCopyLifetime;
        if (over) ground.map_server().serve(FleetCopies::newest);
        return over;
      });
}

// While nobody can fetch the map, nothing that stands falls, and what fell stands up again where it was.
bool outage(FleetGround& ground) {
  return ground.reshard("the CDN is down, and comes back with a new map", [&] {
    ground.map_server().set_down(true);
    ground.run_for(2 * ground.poll());
    if (!ground.all_whole()) ground.fault("a splice fell although only the map was away");
    ground.say(std::to_string(ground.drop_some_phones()) + " phones lose their network meanwhile");
    if (!ground.wait(kShortPatience, [&] { return ground.all_whole(); }))
      ground.fault("a pairing did not come back while the map was away");
    ground.run_for(ground.poll());
    if (ground.has_evicted()) ground.fault("a room was evicted although no map came");
    ground.publish(ground.half_of_the_widest());
    ground.map_server().set_down(false);
  });
}

// The edge that a restarted host asks still serves the map by which it owned more: it must not be taken for new.
bool restart(FleetGround& ground) {
  const shard::ShardMap before = ground.map();
  if (!ground.reshard("hand over", [&] { ground.publish(ground.half_of_the_widest()); })) return false;
  const auto moves = shard::moves_between(before, ground.map());
  FleetRelay& loser = ground.relay(moves.front().from);

  ground.begin("restart a host behind a lagging edge");
  ground.map_server().serve(FleetCopies::lagging);
  const TimePoint stopped = net::monotonic_now();
  loser.stop();
  if (!ground.wait(kShortPatience, [&] { return !loser.is_running() && !loser.is_ready(); }))
    ground.fault(loser.hostname() + " did not stop");
  loser.start();
  if (ground.wait(2 * ground.poll() + seconds(1), [&] { return loser.is_ready(); }))
    ground.fault(loser.hostname() + " got ready by a map older than it had seen");
  ground.map_server().serve(FleetCopies::newest);
  return ground.end(stopped, ground.wait(kFleetPatience, [&] { return loser.is_ready() && ground.all_whole(); }));
}

bool two_phase(FleetGround& ground) {
  return ground.reshard("move in two phases", [&] {
    const shard::ShardMap before = ground.map();
    const auto wanted = std::get<shard::Ranges>(ground.half_of_the_widest());
    const auto moves =
        shard::moves_between(before, std::get<shard::ShardMap>(shard::ShardMap::make(before.version(), wanted)));
    ground.publish(shard::laid_over(before, shard::to_nobody(moves)));
    if (!ground.wait(kShortPatience, [&] { return ground.all_hold_the_newest(); }))
      ground.fault("a relay did not adopt the first phase");
    ground.say(std::to_string(ground.drop_some_phones()) + " phones lose their network between the phases");
    ground.run_for(seconds(3));
    if (ground.has_evicted()) ground.fault("a room was evicted to nobody");
    ground.publish(wanted);
  });
}

constexpr std::array<FleetScenario, 8> kScenarios = {{{"add", add},
                                                      {"remove", remove},
                                                      {"rebalance", rebalance},
                                                      {"kill", kill},
                                                      {"stale", stale},
                                                      {"outage", outage},
                                                      {"restart", restart},
                                                      {"two-phase", two_phase}}};

}  // namespace

std::span<const FleetScenario> fleet_scenarios() { return kScenarios; }

}  // namespace tandem::app
