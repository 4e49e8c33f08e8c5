#include "tandem/shard/map_diff.hpp"

#include <algorithm>
#include <set>

namespace tandem::shard {

std::vector<Move> moves_between(const ShardMap& from, const ShardMap& to) {
  std::vector<Move> moves;
  // Both maps are constant between two cuts, so that it is enough to look where either begins a range.
  std::set<std::uint32_t> cuts;
  for (const ShardMap* map : {&from, &to})
    for (const Range& r : map->ranges()) cuts.insert(r.low);
  for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
    const Bucket low{static_cast<std::uint16_t>(*cut)};
    const auto high = static_cast<std::uint16_t>((std::next(cut) == cuts.end() ? kBucketCount : *std::next(cut)) - 1);
    const std::string& before = from.host_of(low);
    const std::string& after = to.host_of(low);
    if (before == after) continue;
    if (!moves.empty() && moves.back().high + 1 == low.value && moves.back().from == before &&
        moves.back().to == after) {
      moves.back().high = high;
    } else {
      moves.push_back({low.value, high, before, after});
    }
  }
  return moves;
}

std::uint32_t moved_buckets(const std::vector<Move>& moves) {
  std::uint32_t n = 0;
  for (const Move& m : moves) n += m.high - std::uint32_t{m.low} + 1;
  return n;
}

Ranges laid_over(const ShardMap& map, const std::vector<Move>& moves) {
  std::vector<const std::string*> owner(kBucketCount);
  for (const Range& r : map.ranges()) std::fill(owner.begin() + r.low, owner.begin() + r.high + 1, &r.host);
  for (const Move& m : moves) std::fill(owner.begin() + m.low, owner.begin() + m.high + 1, &m.to);
  Ranges ranges;
  for (std::uint32_t b = 0; b < kBucketCount; ++b) {
    const auto bucket = static_cast<std::uint16_t>(b);
    if (b > 0 && (owner[b] == owner[b - 1] || *owner[b] == *owner[b - 1])) {
      ranges.back().high = bucket;
    } else {
      ranges.push_back({bucket, bucket, *owner[b]});
    }
  }
  return ranges;
}

std::vector<Move> to_nobody(std::vector<Move> moves) {
  for (Move& m : moves) m.to = kNobody;
  return moves;
}

std::map<std::string, HostShare> shares(const ShardMap& map) {
  std::map<std::string, HostShare> out;
  for (const Arc& arc : arcs_of(map)) {
    out[arc.host].buckets += arc.width;
    ++out[arc.host].arcs;
  }
  return out;
}

bool is_nobody(std::string_view host) {
  const auto authority = Authority::parse(host);
  return authority && authority->owns_nothing();
}

std::uint32_t unowned_buckets(const ShardMap& map) {
  std::uint32_t n = 0;
  for (const auto& [host, share] : shares(map))
    if (is_nobody(host)) n += share.buckets;
  return n;
}

std::map<std::string, HostChange> host_changes(const ShardMap& from, const ShardMap& to) {
  std::map<std::string, HostChange> out;
  for (const auto& [host, share] : shares(from)) out[host].before = share.buckets;
  for (const auto& [host, share] : shares(to)) out[host].after = share.buckets;
  return out;
}

std::vector<std::string> losing_hosts(const std::vector<Move>& moves) {
  std::set<std::string> out;
  for (const Move& m : moves)
    if (!is_nobody(m.from)) out.insert(m.from);
  return {out.begin(), out.end()};
}

Forecast forecast(const ShardMap& from, const std::vector<Move>& moves,
                  const std::map<std::string, std::uint64_t>& rooms, Duration drain_delay, double eviction_rate) {
  std::map<std::string, std::uint64_t> lost;
  for (const Move& m : moves)
    if (!is_nobody(m.from)) lost[m.from] += m.high - std::uint64_t{m.low} + 1;
  Forecast out;
  out.rooms_affected = 0;
  std::uint64_t largest = 0;
  const auto owned = shares(from);
  for (const auto& [host, buckets] : lost) {
    const auto answered = rooms.find(host);
    if (answered == rooms.end()) {
      out.rooms_affected.reset();
      break;
    }
    const std::uint64_t all = owned.at(host).buckets;
    const std::uint64_t affected = (answered->second * buckets + all - 1) / all;
    *out.rooms_affected += affected;
    largest = std::max(largest, affected);
  }
  if (lost.empty()) return out;
  out.convergence_seconds = to_seconds(drain_delay);
  if (out.rooms_affected) out.convergence_seconds += static_cast<double>(largest) / eviction_rate;
  return out;
}

}  // namespace tandem::shard
