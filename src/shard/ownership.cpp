#include "tandem/shard/ownership.hpp"

#include <cassert>
#include <unordered_map>

namespace tandem::shard {

namespace {

constexpr std::uint32_t kNobody = UINT32_MAX;

// Owners as numbers that mean the same in both maps, so that comparing two buckets compares two integers.
class OwnerNumbers {
 public:
  // One number a bucket; every name under .invalid is the same nobody.
  std::vector<std::uint32_t> of(const ShardMap& map) {
    std::vector<std::uint32_t> out(kBucketCount, kNobody);
    for (const Range& r : map.ranges()) {
      const std::string_view owner = map.owner_of({r.low});
      const std::uint32_t number =
          owner.empty() ? kNobody
                        : numbers_.try_emplace(owner, static_cast<std::uint32_t>(numbers_.size())).first->second;
      for (std::uint32_t b = r.low; b <= r.high; ++b) out[b] = number;
    }
    return out;
  }

 private:
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace

Ownership::Ownership(std::string hostname, bool resolved) : hostname_(std::move(hostname)), resolved_(resolved) {
  if (!resolved_) {
    owned_.set();
    owned_count_ = kBucketCount;
  }
}

bool Ownership::owns(Bucket b) const noexcept { return owned_[b.value]; }

std::string_view Ownership::owner_of(Bucket b) const noexcept {
  if (!resolved_) return hostname_;
  return map_ ? map_->owner_of(b) : std::string_view{};
}

std::vector<std::pair<Bucket, Bucket>> Ownership::owned_ranges() const {
  std::vector<std::pair<Bucket, Bucket>> out;
  for (std::uint32_t b = 0; b < kBucketCount; ++b) {
    if (!owned_[b]) continue;
    const std::uint32_t low = b;
    while (b + 1 < kBucketCount && owned_[b + 1]) ++b;
    out.push_back({{static_cast<std::uint16_t>(low)}, {static_cast<std::uint16_t>(b)}});
  }
  return out;
}

void Ownership::set_floor(MapVersion floor) noexcept {
  floor_ = floor;
  has_floor_ = true;
}

Adoption Ownership::adopt(std::shared_ptr<const ShardMap> map, OwnershipDiff& diff) {
  assert(map);
  diff = {};
  if (!resolved_) return Adoption::same;
  if (has_floor_ && map->version() < floor_) return Adoption::older;
  if (map_ && map->version() == map_->version())
    return map->same_owners(*map_) ? Adoption::same : Adoption::equal_differs;

  OwnerNumbers numbers;
  const std::vector<std::uint32_t> before = map_ ? numbers.of(*map_) : std::vector<std::uint32_t>{};
  const std::vector<std::uint32_t> after = numbers.of(*map);
  std::bitset<kBucketCount> owned;
  for (std::uint32_t i = 0; i < kBucketCount; ++i) {
    const Bucket b{static_cast<std::uint16_t>(i)};
    // Equal numbers are equal hosts: the string is compared only where a range begins or the owner changes.
    const bool ours = i > 0 && after[i] == after[i - 1] ? owned[i - 1] : map->owner_of(b) == hostname_;
    owned[i] = ours;
    if (ours && !owned_[i]) diff.acquired.push_back(b);
    if (!ours && owned_[i]) diff.relinquished.push_back(b);
    if (!ours && !owned_[i] && map_ && before[i] != after[i]) diff.owner_changed.push_back(b);
  }
  owned_ = owned;
  owned_count_ = static_cast<std::uint32_t>(owned_.count());
  map_ = std::move(map);
  set_floor(map_->version());
  return Adoption::adopted;
}

}  // namespace tandem::shard
