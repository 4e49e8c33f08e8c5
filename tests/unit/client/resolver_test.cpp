#include "tandem/client/resolver.hpp"

#include "unit/client/maps.hpp"

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

constexpr TimePoint resolver_start{seconds(100)};

TEST(Resolver, KnowsNothingWithoutMemoryOrMap) {
  EXPECT_FALSE(Resolver(Bucket{1}, {}).host());
  EXPECT_EQ(Resolver(Bucket{1}, {MapVersion{3}, "a.test"}).host(), "a.test");
}

TEST(Resolver, FollowsNewerMapsAndRaisesTheFloor) {
  Resolver resolver(Bucket{1}, {MapVersion{3}, "a.test"});
  EXPECT_EQ(resolver.offer(one_host_map(4, "b.test"), seconds(5), resolver_start), Resolver::Offer::newer);
  EXPECT_EQ(resolver.host(), "b.test");
  EXPECT_EQ(resolver.memory(), (Memory{MapVersion{4}, "b.test"}));
}

TEST(Resolver, NeverBelievesAMapBelowTheFloorOfAnEarlierRun) {
  Resolver resolver(Bucket{1}, {MapVersion{3}, "a.test"});
  EXPECT_EQ(resolver.offer(one_host_map(2, "b.test"), seconds(5), resolver_start), Resolver::Offer::older);
  EXPECT_EQ(resolver.host(), "a.test");
  EXPECT_FALSE(resolver.is_fresh(resolver_start));
}

TEST(Resolver, BelievesAMapOfTheFloorsVersionOnceARun) {
  Resolver resolver(Bucket{1}, {MapVersion{3}, "a.test"});
  EXPECT_EQ(resolver.offer(one_host_map(3, "b.test"), seconds(5), resolver_start), Resolver::Offer::newer);
  EXPECT_EQ(resolver.offer(one_host_map(3, "c.test"), seconds(5), resolver_start), Resolver::Offer::known);
  EXPECT_EQ(resolver.host(), "b.test");
}

TEST(Resolver, SaysNobodyButRemembersTheLastHost) {
  Resolver resolver(Bucket{1}, {MapVersion{3}, "a.test"});
  resolver.offer(one_host_map(4, "nobody.invalid"), seconds(5), resolver_start);
  EXPECT_EQ(resolver.host(), "");
  EXPECT_EQ(resolver.memory().host, "a.test");
}

TEST(Resolver, IsFreshForTheMaxAgeAndNotLonger) {
  Resolver resolver(Bucket{1}, {});
  resolver.offer(one_host_map(1, "a.test"), seconds(5), resolver_start);
  EXPECT_TRUE(resolver.is_fresh(resolver_start + milliseconds(4999)));
  EXPECT_FALSE(resolver.is_fresh(resolver_start + seconds(5)));
  resolver.still_current(seconds(5), resolver_start + seconds(6));
  EXPECT_TRUE(resolver.is_fresh(resolver_start + seconds(10)));
  resolver.distrust();
  EXPECT_FALSE(resolver.is_fresh(resolver_start + seconds(10)));
}

TEST(Resolver, LooksAgainAfterTenSecondsOrAfterALongerMaxAge) {
  Resolver resolver(Bucket{1}, {});
  resolver.offer(one_host_map(1, "a.test"), seconds(5), resolver_start);
  EXPECT_EQ(resolver.refresh_at(), resolver_start + seconds(10));
  resolver.still_current(seconds(60), resolver_start);
  EXPECT_EQ(resolver.refresh_at(), resolver_start + seconds(60));
}

TEST(MaxAge, IsReadFromTheHeaderAndBounded) {
  struct {
    const char* header;
    Duration age;
  } const rows[] = {{"max-age=5", seconds(5)},
                    {"public, MAX-AGE=7 , must-revalidate", seconds(7)},
                    {"max-age=\"9\"", seconds(9)},
                    {"no-store, max-age=5", seconds(0)},
                    {"no-cache", seconds(0)},
                    {"", seconds(0)},
                    {"s-maxage=50", seconds(0)},
                    {"max-age=-3", seconds(0)},
                    {"max-age=abc", seconds(0)},
                    {"max-age=31536000", kLongestMaxAge},
                    {"max-age=99999999999999999999999", kLongestMaxAge},
                    {",,,", seconds(0)}};
  for (const auto& row : rows) EXPECT_EQ(parse_max_age(row.header), row.age) << row.header;
}

}  // namespace
}  // namespace tandem::client
