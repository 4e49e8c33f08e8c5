#include "tandem/shard/map_edit.hpp"

#include "shard/map_carve.hpp"
#include "tandem/shard/map_diff.hpp"

#include <algorithm>
#include <set>

namespace tandem::shard {

namespace {

EditFault refuse(EditError error, std::string argument, std::string value, std::string message) {
  return {error, std::move(argument), std::move(value), std::move(message), {}};
}

std::optional<EditFault> check_serving_host(const std::string& host) {
  const auto authority = Authority::parse(host);
  if (!authority)
    return refuse(EditError::invalid_host, "HOST", host,
                  "is not a bare authority: a lowercase host name or address, with an optional :port");
  if (authority->owns_nothing())
    return refuse(EditError::invalid_host, "HOST", host,
                  "is under .invalid, which owns nothing: its buckets would be served by nobody");
  return {};
}

std::vector<std::string> serving_hosts(const ShardMap& map) {
  std::vector<std::string> hosts;
  for (const std::string& h : map.hosts())
    if (!is_nobody(h)) hosts.push_back(h);
  return hosts;
}

bool is_in(const ShardMap& map, const std::string& host) {
  return std::find(map.hosts().begin(), map.hosts().end(), host) != map.hosts().end();
}

EditFault unknown(const ShardMap& map, std::string argument, const std::string& host) {
  EditFault f = refuse(EditError::unknown_host, std::move(argument), host, "is not in the map");
  f.nearest = nearest(host, serving_hosts(map));
  if (!f.nearest.empty()) f.message += "; did you mean " + f.nearest + "?";
  return f;
}

Ranges equal_arcs(const std::vector<std::string>& hosts) {
  Ranges ranges;
  const auto k = static_cast<std::uint32_t>(hosts.size());
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::uint32_t width = kBucketCount / k + (i < kBucketCount % k ? 1 : 0);
    ranges.push_back({static_cast<std::uint16_t>(next), static_cast<std::uint16_t>(next + width - 1), hosts[i]});
    next += width;
  }
  return ranges;
}

}  // namespace

std::string_view label(EditError e) noexcept {
  switch (e) {
    case EditError::invalid_host: return "invalid_host";
    case EditError::invalid_range: return "invalid_range";
    case EditError::unknown_host: return "unknown_host";
    case EditError::host_exists: return "host_exists";
    case EditError::last_host: return "last_host";
    case EditError::not_a_boundary: return "usage";
  }
  return "usage";
}

Ranges merged(Ranges ranges) {
  Ranges out;
  for (Range& r : ranges) {
    if (!out.empty() && out.back().host == r.host && out.back().high + 1 == r.low) {
      out.back().high = r.high;
    } else {
      out.push_back(std::move(r));
    }
  }
  return out;
}

bool is_merged(const Ranges& ranges) {
  return std::adjacent_find(ranges.begin(), ranges.end(),
                            [](const Range& a, const Range& b) { return a.host == b.host; }) == ranges.end();
}

std::vector<Arc> arcs_of(const ShardMap& map) {
  std::vector<Arc> arcs;
  for (const Range& r : merged(map.ranges())) arcs.push_back({r.low, r.high - std::uint32_t{r.low} + 1, r.host});
  if (arcs.size() > 1 && arcs.front().host == arcs.back().host) {
    arcs.back().width += arcs.front().width;
    arcs.erase(arcs.begin());
  }
  return arcs;
}

Edited init_ranges(const std::vector<std::string>& hosts) {
  std::set<std::string> seen;
  for (const std::string& host : hosts) {
    if (auto bad = check_serving_host(host)) return *std::move(bad);
    if (!seen.insert(host).second) return refuse(EditError::host_exists, "HOST", host, "is named twice");
  }
  if (hosts.empty() || hosts.size() > kBucketCount)
    return refuse(EditError::invalid_host, "HOST", std::to_string(hosts.size()), "hosts: a map holds 1 to 65536");
  return equal_arcs(hosts);
}

Edited remove_host(const ShardMap& map, const std::string& host, const std::optional<std::string>& into) {
  if (!is_in(map, host)) return unknown(map, "HOST", host);
  if (!is_nobody(host) && serving_hosts(map).size() == 1)
    return refuse(EditError::last_host, "HOST", host, "is the last host: without it nobody would serve any room");
  if (into && *into == host) return refuse(EditError::invalid_host, "--into", *into, "is the host that is to leave");
  if (into && !is_in(map, *into) && !(Authority::parse(*into) && is_nobody(*into)))
    return unknown(map, "--into", *into);

  auto counts = shares(map);
  const std::vector<Arc> arcs = arcs_of(map);
  if (arcs.size() == 1 && !into)
    return refuse(EditError::last_host, "HOST", host, "holds the whole ring: it has no neighbour to give it to");
  std::vector<Move> moves;
  for (std::size_t i = 0; i < arcs.size(); ++i) {
    if (arcs[i].host != host) continue;
    // Neighbours are never the leaving host itself: its adjacent arcs are one.
    const std::string& below = arcs[(i + arcs.size() - 1) % arcs.size()].host;
    const std::string& above = arcs[(i + 1) % arcs.size()].host;
    std::string to = counts[above].buckets < counts[below].buckets ? above : below;
    if (is_nobody(below) != is_nobody(above)) to = is_nobody(below) ? above : below;
    if (into) to = *into;
    counts[to].buckets += arcs[i].width;
    const std::uint32_t end = arcs[i].start + arcs[i].width;
    const auto low = static_cast<std::uint16_t>(arcs[i].start);
    if (end > kBucketCount) {
      moves.push_back({low, 65535, host, to});
      moves.push_back({0, static_cast<std::uint16_t>(end - kBucketCount - 1), host, to});
    } else {
      moves.push_back({low, static_cast<std::uint16_t>(end - 1), host, to});
    }
  }
  return laid_over(map, moves);
}

Edited move_range(const ShardMap& map, Bucket low, Bucket high, const std::string& host, bool fresh) {
  const auto authority = Authority::parse(host);
  if (!authority)
    return refuse(EditError::invalid_host, "HOST", host,
                  "is not a bare authority: a lowercase host name or address, with an optional :port");
  if (!fresh && !authority->owns_nothing() && !is_in(map, host)) {
    EditFault f = unknown(map, "HOST", host);
    f.message += " (--new brings in a host that owns nothing yet)";
    return f;
  }
  if (low <= high) return laid_over(map, {{low.value, high.value, "", host}});
  return laid_over(map, {{low.value, 65535, "", host}, {0, high.value, "", host}});
}

Edited rebalance(const ShardMap& map) {
  const std::vector<std::string> hosts = serving_hosts(map);
  if (hosts.empty()) return refuse(EditError::last_host, "rebalance", "0 hosts", "in the map: add one first");
  std::uint32_t least = kBucketCount, most = 0;
  bool one_arc_each = true;
  for (const auto& [host, share] : shares(map)) {
    if (is_nobody(host)) one_arc_each = false;
    if (share.arcs != 1) one_arc_each = false;
    least = std::min(least, share.buckets);
    most = std::max(most, share.buckets);
  }
  if (one_arc_each && most - least <= 1) return merged(map.ranges());
  return equal_arcs(hosts);
}

Edited add_host(const ShardMap& map, const std::string& host, const AddOptions& options) {
  if (auto bad = check_serving_host(host)) return *std::move(bad);
  if (is_in(map, host)) return refuse(EditError::host_exists, "HOST", host, "is in the map already");
  return carve(map, host, options, static_cast<std::uint32_t>(kBucketCount / (serving_hosts(map).size() + 1)));
}

}  // namespace tandem::shard
