// Random valid maps for property tests.
#pragma once

#include "tandem/core/random.hpp"
#include "tandem/shard/map.hpp"

#include <memory>
#include <set>
#include <string>

namespace tandem::shard {

inline std::vector<Range> random_ranges(RandomSource& random, std::size_t most_ranges, std::size_t hosts, bool nobody) {
  std::set<std::uint32_t> cuts{0};
  const std::uint64_t wanted = 1 + random.below(most_ranges);
  while (cuts.size() < wanted) cuts.insert(static_cast<std::uint32_t>(random.below(kBucketCount)));
  std::vector<Range> ranges;
  for (auto it = cuts.begin(); it != cuts.end(); ++it) {
    const std::uint32_t end = std::next(it) == cuts.end() ? kBucketCount : *std::next(it);
    const std::uint64_t h = random.below(hosts + (nobody ? 1 : 0));
    ranges.push_back({static_cast<std::uint16_t>(*it), static_cast<std::uint16_t>(end - 1),
                      h == hosts ? "nobody.invalid" : "h" + std::to_string(h) + ".example"});
  }
  return ranges;
}

inline ShardMap random_map(RandomSource& random, MapVersion version, std::size_t most_ranges, std::size_t hosts,
                           bool nobody) {
  return std::get<ShardMap>(ShardMap::make(version, random_ranges(random, most_ranges, hosts, nobody)));
}

}  // namespace tandem::shard
