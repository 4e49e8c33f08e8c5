#include "tandem/shard/ownership.hpp"

#include "unit/shard/random_map.hpp"

#include <gtest/gtest.h>

namespace tandem::shard {
namespace {

std::shared_ptr<const ShardMap> map_of(std::uint64_t version, std::vector<Range> ranges) {
  return std::make_shared<const ShardMap>(std::get<ShardMap>(ShardMap::make({version}, std::move(ranges))));
}

const std::string kMe = "me.example";

TEST(Ownership, OwnsEverythingInDirectMode) {
  const Ownership o(kMe, false);
  EXPECT_TRUE(o.has_map());
  EXPECT_TRUE(o.owns({0}));
  EXPECT_TRUE(o.owns({65535}));
  EXPECT_EQ(o.owned_count(), kBucketCount);
  EXPECT_EQ(o.owner_of({3}), kMe);
  EXPECT_EQ(o.owned_ranges().size(), 1u);
}

TEST(Ownership, OwnsNothingBeforeItsFirstMap) {
  const Ownership o(kMe, true);
  EXPECT_FALSE(o.has_map());
  EXPECT_FALSE(o.owns({7}));
  EXPECT_EQ(o.owner_of({7}), "");
}

TEST(Ownership, AdoptsOnlyAGreaterVersion) {
  Ownership o(kMe, true);
  OwnershipDiff diff;
  EXPECT_EQ(o.adopt(map_of(5, {{0, 65535, kMe}}), diff), Adoption::adopted);
  EXPECT_EQ(diff.acquired.size(), kBucketCount);
  EXPECT_EQ(o.adopt(map_of(4, {{0, 65535, "b"}}), diff), Adoption::older);
  EXPECT_EQ(o.adopt(map_of(5, {{0, 65535, kMe}}), diff), Adoption::same);
  EXPECT_EQ(o.adopt(map_of(5, {{0, 65535, "b"}}), diff), Adoption::equal_differs);
  EXPECT_TRUE(diff.acquired.empty() && diff.relinquished.empty());
  EXPECT_EQ(o.owned_count(), kBucketCount);
  EXPECT_EQ(o.adopt(map_of(6, {{0, 9, kMe}, {10, 65535, "b"}}), diff), Adoption::adopted);
  EXPECT_EQ(diff.relinquished.size(), kBucketCount - 10);
  EXPECT_EQ(o.owner_of({10}), "b");
}

TEST(Ownership, AdoptsAMapOfTheFloorsOwnVersionAfterARestartAndNeverAnOlderOne) {
  Ownership o(kMe, true);
  OwnershipDiff diff;
  o.set_floor({8});
  EXPECT_EQ(o.adopt(map_of(7, {{0, 65535, kMe}}), diff), Adoption::older);
  EXPECT_FALSE(o.has_map());
  EXPECT_EQ(o.adopt(map_of(8, {{0, 65535, kMe}}), diff), Adoption::adopted);
  EXPECT_EQ(o.adopt(map_of(8, {{0, 65535, kMe}}), diff), Adoption::same);
  EXPECT_EQ(o.floor(), MapVersion{8});
}

TEST(Ownership, AcceptsVersionZeroAsItsFirstMap) {
  Ownership o(kMe, true);
  OwnershipDiff diff;
  EXPECT_EQ(o.adopt(map_of(0, {{0, 65535, kMe}}), diff), Adoption::adopted);
  EXPECT_EQ(o.adopt(map_of(0, {{0, 65535, kMe}}), diff), Adoption::same);
}

TEST(Ownership, TakesAMapThatGivesItNothing) {
  Ownership o(kMe, true);
  OwnershipDiff diff;
  (void)o.adopt(map_of(1, {{0, 65535, kMe}}), diff);
  EXPECT_EQ(o.adopt(map_of(2, {{0, 65535, "b"}}), diff), Adoption::adopted);
  EXPECT_EQ(o.owned_count(), 0u);
  EXPECT_TRUE(o.owned_ranges().empty());
}

TEST(Ownership, NeverOwnsUnderInvalidWhateverItsName) {
  Ownership o("me.invalid", true);
  OwnershipDiff diff;
  EXPECT_EQ(o.adopt(map_of(1, {{0, 65535, "me.invalid"}}), diff), Adoption::adopted);
  EXPECT_EQ(o.owned_count(), 0u);
  EXPECT_EQ(o.owner_of({5}), "");
}

TEST(Ownership, ReportsAChangeOfOwnerBetweenOthersButNotBetweenTwoNobodies) {
  Ownership o(kMe, true);
  OwnershipDiff diff;
  (void)o.adopt(map_of(1, {{0, 9, "a"}, {10, 19, "nobody.invalid"}, {20, 65535, kMe}}), diff);
  (void)o.adopt(map_of(2, {{0, 4, "b"}, {5, 9, "a"}, {10, 19, "none.invalid"}, {20, 65535, kMe}}), diff);
  ASSERT_EQ(diff.owner_changed.size(), 5u);
  EXPECT_EQ(diff.owner_changed.front(), Bucket{0});
  EXPECT_EQ(diff.owner_changed.back(), Bucket{4});
}

TEST(Ownership, MatchesABucketByBucketModel) {
  SeededRandom random(11);
  for (int round = 0; round < 60; ++round) {
    Ownership o("h0.example", true);
    std::vector<std::string> model(kBucketCount);  // the last adopted owners; "" nobody
    std::uint64_t newest = 0;
    bool any = false;
    for (std::uint64_t step = 0; step < 6; ++step) {
      const std::uint64_t version = random.below(8);
      auto map = std::make_shared<const ShardMap>(random_map(random, {version}, 40, 4, true));
      OwnershipDiff diff;
      const Adoption outcome = o.adopt(map, diff);
      EXPECT_EQ(outcome == Adoption::adopted, !any || version > newest);
      if (outcome != Adoption::adopted) {
        EXPECT_TRUE(diff.acquired.empty() && diff.relinquished.empty() && diff.owner_changed.empty());
        continue;
      }
      std::size_t a = 0, r = 0, c = 0;
      std::uint32_t owned = 0;
      for (std::uint32_t i = 0; i < kBucketCount; ++i) {
        const Bucket b{static_cast<std::uint16_t>(i)};
        const std::string owner(map->owner_of(b));
        const bool was = any && model[i] == "h0.example", is = owner == "h0.example";
        if (is && !was) {
          ASSERT_TRUE(a < diff.acquired.size() && diff.acquired[a++] == b);
        }
        if (was && !is) {
          ASSERT_TRUE(r < diff.relinquished.size() && diff.relinquished[r++] == b);
        }
        if (any && !was && !is && owner != model[i]) {
          ASSERT_TRUE(c < diff.owner_changed.size() && diff.owner_changed[c++] == b);
        }
        ASSERT_EQ(o.owns(b), is);
        owned += is;
        model[i] = owner;
      }
      EXPECT_EQ(a, diff.acquired.size());
      EXPECT_EQ(r, diff.relinquished.size());
      EXPECT_EQ(c, diff.owner_changed.size());
      EXPECT_EQ(o.owned_count(), owned);
      any = true;
      newest = version;
    }
  }
}

}  // namespace
}  // namespace tandem::shard
