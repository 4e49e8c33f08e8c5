#include "shard/map_carve.hpp"

#include "tandem/shard/map_diff.hpp"

#include <algorithm>
#include <numeric>

namespace tandem::shard {

namespace {

// What is left of an arc while it gives from either end. It never gives its last bucket.
struct Giver {
  std::uint32_t start = 0, width = 0;
  [[nodiscard]] std::uint32_t spare() const { return width - 1; }
};

// A place where one arc ends and another begins. The two are the same arc only at a seam that no boundary crosses.
struct Boundary {
  std::uint32_t at = 0;  // the first bucket above it; the seam is 65536
  std::size_t below = 0, above = 0;
  std::uint32_t widths = 0;
};

std::vector<Boundary> boundaries_of(const std::vector<Arc>& arcs) {
  std::vector<Boundary> out;
  for (std::size_t i = 0; i < arcs.size() && arcs.size() > 1; ++i) {
    const std::size_t below = (i + arcs.size() - 1) % arcs.size();
    out.push_back({arcs[i].start == 0 ? kBucketCount : arcs[i].start, below, i, arcs[i].width + arcs[below].width});
  }
  std::sort(out.begin(), out.end(), [](const Boundary& a, const Boundary& b) {
    return std::pair(b.widths, a.at) < std::pair(a.widths, b.at);  // widest first, then lowest
  });
  return out;
}

class Carving {
 public:
  Carving(const std::vector<Arc>& arcs, const std::string& host) : host_(host) {
    for (const Arc& a : arcs) givers_.push_back({a.start, a.width});
  }

  [[nodiscard]] std::uint32_t spare() const {
    return std::accumulate(givers_.begin(), givers_.end(), std::uint32_t{0},
                           [](std::uint32_t sum, const Giver& g) { return sum + g.spare(); });
  }

  // Takes up to `wanted` around the boundary: the odd bucket from below, and from one side what the other lacks.
  std::uint32_t straddle(const Boundary& b, std::uint32_t wanted) {
    Giver& below = givers_[b.below];
    Giver& above = givers_[b.above];
    std::uint32_t from_below = std::min(wanted - wanted / 2, below.spare());
    const std::uint32_t from_above = std::min(wanted - from_below, above.spare());
    from_below = std::min(wanted - from_above, below.spare());
    take(b.at + kBucketCount - from_below, from_below);
    take(b.at, from_above);
    below.width -= from_below;
    above.width -= from_above;
    above.start += from_above;
    return from_below + from_above;
  }

  // The seam inside one arc: both sides are that arc's, which keeps its middle.
  std::uint32_t straddle_inside(std::size_t arc, std::uint32_t wanted) {
    Giver& g = givers_[arc];
    const bool whole_ring = g.width == kBucketCount;
    const std::uint32_t above_seam = whole_ring ? kBucketCount : g.start + g.width - kBucketCount;
    const std::uint32_t below_seam = whole_ring ? kBucketCount : kBucketCount - g.start;
    wanted = std::min(wanted, g.spare());
    std::uint32_t from_below = std::min(wanted - wanted / 2, below_seam);
    const std::uint32_t from_above = std::min(wanted - from_below, above_seam);
    from_below = wanted - from_above;
    take(2 * kBucketCount - from_below, from_below);
    take(0, from_above);
    g.width = 1;  // cut in two: what remains of it gives no more
    return wanted;
  }

  void take(std::uint32_t start, std::uint32_t width) {
    start %= kBucketCount;
    if (width == 0) return;
    const std::uint32_t end = start + width;
    moves_.push_back(
        {static_cast<std::uint16_t>(start), static_cast<std::uint16_t>(std::min(end, kBucketCount) - 1), "", host_});
    if (end > kBucketCount) moves_.push_back({0, static_cast<std::uint16_t>(end - kBucketCount - 1), "", host_});
  }

  [[nodiscard]] const std::vector<Move>& moves() const { return moves_; }

 private:
  const std::string& host_;
  std::vector<Giver> givers_;
  std::vector<Move> moves_;
};

bool is_low_of_a_range(const ShardMap& map, std::uint32_t at) {
  const Ranges ranges = merged(map.ranges());
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) { return r.low == at; });
}

}  // namespace

Edited carve(const ShardMap& map, const std::string& host, const AddOptions& options, std::uint32_t fair_share) {
  if (options.at && !is_low_of_a_range(map, *options.at))
    return EditFault{EditError::not_a_boundary,
                     "--at",
                     std::to_string(*options.at),
                     "is no boundary: name the low of a range, 0 for the seam",
                     {}};
  const std::vector<Arc> arcs = arcs_of(map);
  Carving carving(arcs, host);
  std::uint32_t wanted = options.buckets.value_or(std::min(fair_share, carving.spare()));
  if (wanted == 0 || wanted > carving.spare())
    return EditFault{EditError::invalid_range,
                     "--buckets",
                     std::to_string(wanted),
                     "buckets: 1 to " + std::to_string(carving.spare()) + " can be given, as every arc keeps one",
                     {}};

  std::vector<Boundary> boundaries = boundaries_of(arcs);
  if (options.at) {
    const std::uint32_t at = *options.at == 0 ? kBucketCount : *options.at;
    const auto chosen =
        std::find_if(boundaries.begin(), boundaries.end(), [&](const Boundary& b) { return b.at == at; });
    if (chosen != boundaries.end()) {
      std::rotate(boundaries.begin(), chosen, chosen + 1);
    } else {  // the seam lies inside the last arc
      wanted -= carving.straddle_inside(arcs.size() - 1, wanted);
    }
  } else if (boundaries.empty()) {
    carving.take(kBucketCount - wanted, wanted);
    wanted = 0;
  }
  for (const Boundary& b : boundaries) {
    if (wanted == 0) break;
    wanted -= carving.straddle(b, wanted);
  }
  if (wanted > 0)
    return EditFault{EditError::invalid_range,
                     "--buckets",
                     std::to_string(*options.buckets),
                     "buckets: more than the arcs beside their boundaries can give",
                     {}};
  return laid_over(map, carving.moves());
}

}  // namespace tandem::shard
