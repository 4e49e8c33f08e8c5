// What this host owns now, and how a newly adopted map changes it (2-sharding 2.1, 2.4). Pure: no time, no rooms.
#pragma once

#include "tandem/shard/map.hpp"

#include <bitset>
#include <memory>
#include <string>
#include <vector>

namespace tandem::shard {

enum class Adoption : std::uint8_t { adopted, same, older, equal_differs };

// Bucket by bucket what an adoption changed for this host. Only buckets that concern it are listed, ascending.
struct OwnershipDiff {
  std::vector<Bucket> acquired;       // were not ours, are now
  std::vector<Bucket> relinquished;   // were ours, are not any more
  std::vector<Bucket> owner_changed;  // not ours before or after, but the owner is another than before (a draining
                                      // bucket's wait restarts)
};

class Ownership {
 public:
  explicit Ownership(std::string hostname, bool resolved);  // direct mode owns everything and adopts nothing

  [[nodiscard]] bool has_map() const noexcept { return !resolved_ || map_ != nullptr; }
  [[nodiscard]] bool owns(Bucket b) const noexcept;                  // O(1); resolved without a map: owns nothing
  [[nodiscard]] std::string_view owner_of(Bucket b) const noexcept;  // empty: nobody; direct: the hostname
  [[nodiscard]] std::uint32_t owned_count() const noexcept { return owned_count_; }
  [[nodiscard]] std::vector<std::pair<Bucket, Bucket>> owned_ranges() const;
  [[nodiscard]] const ShardMap* map() const noexcept { return map_.get(); }

  void set_floor(MapVersion floor) noexcept;  // persisted by an earlier run
  [[nodiscard]] MapVersion floor() const noexcept { return floor_; }

  // Adopts a version greater than the newest seen (or, as the first map of this run, equal to the floor); else says why
  // not. O(65,536) bit operations at worst, once a map; never touches rooms.
  [[nodiscard]] Adoption adopt(std::shared_ptr<const ShardMap> map, OwnershipDiff& diff);

 private:
  std::string hostname_;
  bool resolved_;
  std::shared_ptr<const ShardMap> map_;
  std::bitset<kBucketCount> owned_;
  std::uint32_t owned_count_ = 0;
  MapVersion floor_{};
  bool has_floor_ = false;
};

}  // namespace tandem::shard
