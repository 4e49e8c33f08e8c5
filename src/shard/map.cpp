#include "tandem/shard/map.hpp"

#include "shard/map_fault.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace tandem::shard {

namespace {

// Ranges that tile the ring exactly, in ascending order; else the first bucket that is missing or claimed twice.
std::variant<std::vector<Range>, MapFault> tile(std::vector<Range> ranges) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(ranges[a].low, a) < std::pair(ranges[b].low, b); });
  std::uint32_t next = 0;
  for (const std::size_t i : order) {
    const std::uint32_t low = ranges[i].low;
    if (low != next) {
      const bool gap = low > next;
      return fault(MapFaultKind::gap_or_overlap, range_path(i), std::to_string(gap ? next : low),
                   gap ? "is the first bucket that no range holds" : "is the first bucket that two ranges hold");
    }
    next = std::uint32_t{ranges[i].high} + 1;
  }
  if (next != kBucketCount)
    return fault(MapFaultKind::gap_or_overlap, range_path(order.back()), std::to_string(next),
                 "is the first bucket that no range holds");
  std::vector<Range> sorted;
  sorted.reserve(ranges.size());
  for (const std::size_t i : order) sorted.push_back(std::move(ranges[i]));
  return sorted;
}

}  // namespace

std::string_view label(MapFaultKind k) noexcept {
  switch (k) {
    case MapFaultKind::malformed: return "malformed";
    case MapFaultKind::negative_version: return "negative_version";
    case MapFaultKind::empty_ranges: return "empty_ranges";
    case MapFaultKind::invalid_host: return "invalid_host";
    case MapFaultKind::invalid_range: return "invalid_range";
    case MapFaultKind::gap_or_overlap: return "gap_or_overlap";
    case MapFaultKind::too_large: return "too_large";
  }
  return "malformed";
}

std::variant<ShardMap, MapFault> ShardMap::make(MapVersion version, std::vector<Range> ranges) {
  if (version.value > kMaxMapVersion)
    return fault(MapFaultKind::malformed, "version", std::to_string(version.value), "is above 2^53-1");
  if (ranges.empty()) return fault(MapFaultKind::empty_ranges, "ranges", "[]", "gives no bucket to anybody");
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (auto bad = check_range(ranges[i], i)) return *std::move(bad);
  auto tiled = tile(std::move(ranges));
  if (auto* bad = std::get_if<MapFault>(&tiled)) return std::move(*bad);

  ShardMap map;
  map.version_ = version;
  map.ranges_ = std::get<std::vector<Range>>(std::move(tiled));
  map.owner_.resize(kBucketCount);
  std::unordered_map<std::string_view, std::uint16_t> index;  // views into ranges_, which no longer moves
  for (const Range& r : map.ranges_) {
    const auto [it, fresh] = index.try_emplace(r.host, static_cast<std::uint16_t>(map.hosts_.size()));
    if (fresh) map.hosts_.push_back(r.host);
    std::fill(map.owner_.begin() + r.low, map.owner_.begin() + r.high + 1, it->second);
  }
  map.nobody_.reserve(map.hosts_.size());
  for (const std::string& host : map.hosts_) map.nobody_.push_back(Authority::parse(host)->owns_nothing());
  return map;
}

std::string_view ShardMap::owner_of(Bucket b) const noexcept {
  const std::uint16_t i = owner_[b.value];
  return nobody_[i] ? std::string_view{} : std::string_view{hosts_[i]};
}

bool ShardMap::same_owners(const ShardMap& other) const noexcept {
  for (std::uint32_t b = 0; b < kBucketCount; ++b)
    if (hosts_[owner_[b]] != other.hosts_[other.owner_[b]]) return false;
  return true;
}

std::string ShardMap::to_json() const {
  // Hosts are bare authorities: nothing in them needs escaping.
  std::string out = "{\n  \"version\": " + std::to_string(version_.value) + ",\n  \"ranges\": [\n";
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const Range& r = ranges_[i];
    out += "    {\"low\": " + std::to_string(r.low) + ", \"high\": " + std::to_string(r.high) + ", \"host\": \"" +
           r.host + (i + 1 < ranges_.size() ? "\"},\n" : "\"}\n");
  }
  return out += "  ]\n}\n";
}

}  // namespace tandem::shard
