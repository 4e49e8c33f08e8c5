// Two-phase publishing: the moved buckets belong to nobody until every host has let go of them.
#include "tandem/app/map_publish.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

namespace tandem::app {

using shard::ShardMap;
using std::chrono::steady_clock;

namespace {

// Whatever somebody else gave to a host in the meantime stays where it is.
shard::Ranges claim_unowned(const ShardMap& current, const std::vector<shard::Move>& moves) {
  std::vector<shard::Move> mine;
  for (const shard::Move& m : moves)
    for (const shard::Range& r : current.ranges()) {
      if (!shard::is_nobody(r.host) || r.high < m.low || r.low > m.high) continue;
      mine.push_back({std::max(r.low, m.low), std::min(r.high, m.high), r.host, m.to});
    }
  return laid_over(current, mine);
}

std::string finish_by_hand(const std::vector<shard::Move>& moves) {
  std::string out;
  for (const shard::Move& m : moves) {
    if (!out.empty()) out += ", then ";
    out += "move " + std::to_string(m.low) + "-" + std::to_string(m.high) + " " + m.to + " --new";
  }
  return out;
}

}  // namespace

void MapPublisher::two_phases(const MapChange& change) {
  std::vector<shard::Move> moves;
  std::optional<ShardMap> before;
  MapChange first = change;
  first.edit = [&](const ShardMap& current) {
    auto wanted = ShardMap::make(current.version(), shard::merged(change.edit(current)));
    if (const auto* fault = std::get_if<shard::MapFault>(&wanted)) throw invalid_map("the edited map", *fault);
    moves = moves_between(current, std::get<ShardMap>(wanted));
    before = current;
    return laid_over(current, shard::to_nobody(moves));
  };
  Published one = publish(first, 1, !options_.yes, "in two phases: first without an owner, then with its new one");
  MapChange second = change;
  second.drafted_from.reset();
  second.draft.clear();
  second.edit = [&moves](const ShardMap& current) { return claim_unowned(current, moves); };
  if (moves.empty()) {
    one.phase.reset();
    return driver_.report(one);
  }
  driver_.report(one);
  if (options_.dry_run) {  // the second phase, as it would follow the first
    auto between = ShardMap::make(one.version, laid_over(*before, shard::to_nobody(moves)));
    return driver_.report(plan(std::get<ShardMap>(between), second, 2).what);
  }
  std::vector<MapWarning> warnings;
  if (one.published) {
    const ShardMap after = std::get<ShardMap>(ShardMap::make(one.version, laid_over(*before, moves)));
    try {
      warnings = wait_for_hosts(*before, after, one.version);
    } catch (MapError& stopped) {
      stopped.add("finish", finish_by_hand(moves));
      throw MapError(stopped.code(), std::string(stopped.what()) + "; to finish: " + finish_by_hand(moves),
                     stopped.extra());
    }
  }
  Published two = publish(second, 2, false, "");
  two.warnings.insert(two.warnings.begin(), warnings.begin(), warnings.end());
  driver_.report(two);
}

std::vector<MapWarning> MapPublisher::wait_for_hosts(const ShardMap& before, const ShardMap& after,
                                                     MapVersion version) {
  std::set<std::string> hosts;
  for (const ShardMap* map : {&before, &after})
    for (const std::string& h : map->hosts())
      if (!shard::is_nobody(h)) hosts.insert(h);
  const bool all_can_be_asked =
      std::all_of(hosts.begin(), hosts.end(), [&](const std::string& h) { return options_.admins.contains(h); });
  Admins asked;
  for (const auto& [host, url] : options_.admins)
    if (hosts.contains(host)) asked[host] = url;

  const auto end = steady_clock::now() + 2 * options_.poll_interval;
  const Duration pause = std::clamp<Duration>(options_.poll_interval / 10, milliseconds(20), milliseconds(500));
  std::map<std::string, HostMetrics> seen;
  while (true) {
    const Duration left = end - steady_clock::now();
    if (all_can_be_asked) {
      seen = read_metrics_of_all(asked, std::clamp<Duration>(left, milliseconds(100), kAdminTimeout));
      const auto behind = static_cast<std::size_t>(
          std::count_if(seen.begin(), seen.end(), [&](const auto& s) { return s.second.version < version; }));
      if (seen.size() == hosts.size() && behind == 0) return {};
      driver_.progress(std::to_string(seen.size() - behind) + " of " + std::to_string(hosts.size()) +
                       " hosts have adopted version " + std::to_string(version.value));
    } else {
      driver_.progress("waiting two poll intervals, as not every host can be asked");
    }
    if (steady_clock::now() >= end) break;
    if (driver_.interrupted())
      throw MapError("interrupted", "interrupted between the phases: version " + std::to_string(version.value) +
                                        " stands, its moved buckets belong to nobody");
    std::this_thread::sleep_for(std::clamp<Duration>(end - steady_clock::now(), Duration{0}, pause));
  }
  if (!all_can_be_asked) seen = read_metrics_of_all(asked, milliseconds(500));
  std::vector<MapWarning> warnings;
  for (const auto& [host, metrics] : seen)
    if (metrics.version < version)
      warnings.push_back({"stale_map", host + " still holds version " + std::to_string(metrics.version.value) +
                                           " after two polls: it may admit rooms that its successor admits as well"});
  return warnings;
}

}  // namespace tandem::app
