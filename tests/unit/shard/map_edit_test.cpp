#include "tandem/shard/map_edit.hpp"

#include "tandem/shard/map_diff.hpp"
#include "unit/shard/random_map.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace tandem::shard {
namespace {

ShardMap map_of(Ranges ranges) { return std::get<ShardMap>(ShardMap::make({1}, std::move(ranges))); }

Ranges done(const Edited& edited) {
  if (const auto* f = std::get_if<EditFault>(&edited)) {
    ADD_FAILURE() << label(f->error) << ": " << f->value << " " << f->message;
    return {{0, 65535, "failed"}};
  }
  return std::get<Ranges>(edited);
}

EditFault refused(const Edited& edited) {
  if (const auto* f = std::get_if<EditFault>(&edited)) return *f;
  ADD_FAILURE() << "was accepted";
  return {};
}

ShardMap add(const ShardMap& map, const std::string& host, AddOptions options = {}) {
  return map_of(done(add_host(map, host, options)));
}

std::string host(int i) { return "h" + std::to_string(i) + ".example"; }

ShardMap equal(int hosts) {
  std::vector<std::string> names;
  for (int i = 1; i <= hosts; ++i) names.push_back(host(i));
  return map_of(done(init_ranges(names)));
}

TEST(MapEdit, WalksOneTwoThreeTwoHostsAsPinned) {
  const ShardMap one = equal(1);
  const ShardMap two = add(one, host(2));
  EXPECT_EQ(two.ranges(), (Ranges{{0, 32767, host(1)}, {32768, 65535, host(2)}}));
  const ShardMap three = add(two, host(3));
  EXPECT_EQ(three.ranges(), (Ranges{{0, 21844, host(1)}, {21845, 43689, host(3)}, {43690, 65535, host(2)}}));
  EXPECT_EQ(done(remove_host(three, host(3), {})), (Ranges{{0, 43689, host(1)}, {43690, 65535, host(2)}}));
}

TEST(MapEdit, GivesTheOddBucketsOfAnInitToTheFirstHosts) {
  EXPECT_EQ(equal(3).ranges(), (Ranges{{0, 21845, host(1)}, {21846, 43690, host(2)}, {43691, 65535, host(3)}}));
}

TEST(MapEdit, RefusesAnInitWithABadOrDoubleName) {
  EXPECT_EQ(refused(init_ranges({"H1"})).error, EditError::invalid_host);
  EXPECT_EQ(refused(init_ranges({"nobody.invalid"})).error, EditError::invalid_host);
  EXPECT_EQ(refused(init_ranges({"a", "b", "a"})).error, EditError::host_exists);
}

TEST(MapEdit, AddsTheEighthHostWithExactlyItsShareAndNoOtherBoundary) {
  const ShardMap before = equal(7);
  const ShardMap after = add(before, host(8));
  const auto moves = moves_between(before, after);
  EXPECT_EQ(moved_buckets(moves), 8192u);
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].high + 1, moves[1].low);
  EXPECT_EQ(after.ranges().size(), 8u);
}

TEST(MapEdit, AddsAtTheBoundaryItIsToldHalfFromEachSide) {
  const ShardMap before = equal(4);
  const auto moves = moves_between(before, add(before, "n", {.at = 49152, .buckets = {}}));
  EXPECT_EQ(moves, (std::vector<Move>{{42598, 49151, host(3), "n"}, {49152, 55704, host(4), "n"}}));
}

TEST(MapEdit, AddsAcrossTheSeam) {
  const ShardMap before = equal(2);
  const ShardMap after = add(before, "n", {.at = 0, .buckets = 5});
  EXPECT_EQ(after.ranges(), (Ranges{{0, 1, "n"}, {2, 32767, host(1)}, {32768, 65532, host(2)}, {65533, 65535, "n"}}));
}

TEST(MapEdit, PrefersTheLowestOfEquallyWideBoundariesCountingTheSeamLast) {
  EXPECT_EQ(moves_between(equal(2), add(equal(2), "n", {.at = {}, .buckets = 2})),
            (std::vector<Move>{{32767, 32767, host(1), "n"}, {32768, 32768, host(2), "n"}}));
}

TEST(MapEdit, SeesAnArcOverTheSeamAsOne) {
  const ShardMap map = map_of({{0, 19999, "a"}, {20000, 39999, "b"}, {40000, 49999, "c"}, {50000, 65535, "a"}});
  EXPECT_EQ(arcs_of(map), (std::vector<Arc>{{20000, 20000, "b"}, {40000, 10000, "c"}, {50000, 35536, "a"}}));
  // b and a together are the widest: the boundary at 20000.
  EXPECT_EQ(moves_between(map, add(map, "n", {.at = {}, .buckets = 2})),
            (std::vector<Move>{{19999, 19999, "a", "n"}, {20000, 20000, "b", "n"}}));
}

TEST(MapEdit, TakesFromTheOtherSideWhatOneLacksAndNeverTheLastBucketOfAnArc) {
  const ShardMap map = map_of({{0, 9, "a"}, {10, 12, "b"}, {13, 65535, "c"}});
  const ShardMap after = add(map, "n", {.at = 13, .buckets = 100});
  EXPECT_EQ(after.ranges(), (Ranges{{0, 9, "a"}, {10, 10, "b"}, {11, 110, "n"}, {111, 65535, "c"}}));
}

TEST(MapEdit, TakesTheRestFromTheNextWidestBoundary) {
  const ShardMap map = map_of({{0, 9, "a"}, {10, 12, "b"}, {13, 65535, "c"}});
  const ShardMap after = add(map, "n", {.at = 10, .buckets = 20});
  const auto share = shares(after);
  EXPECT_EQ(share.at("n").buckets, 20u);
  EXPECT_EQ(share.at("a").buckets, 1u);
  EXPECT_EQ(share.at("b").buckets, 1u);
  EXPECT_EQ(moved_buckets(moves_between(map, after)), 20u);
}

TEST(MapEdit, RefusesMoreBucketsThanCanBeGiven) {
  EXPECT_EQ(refused(add_host(equal(2), "n", {.at = {}, .buckets = 65535})).error, EditError::invalid_range);
  EXPECT_EQ(shares(add(equal(2), "n", {.at = {}, .buckets = 65534})).at(host(1)).buckets, 1u);
  EXPECT_EQ(refused(add_host(equal(2), "n", {.at = {}, .buckets = 0})).error, EditError::invalid_range);
}

TEST(MapEdit, RefusesToAddWhatIsNoHostOrIsThereOrHasNoSuchBoundary) {
  EXPECT_EQ(refused(add_host(equal(2), "N", {})).error, EditError::invalid_host);
  EXPECT_EQ(refused(add_host(equal(2), "x.invalid", {})).error, EditError::invalid_host);
  EXPECT_EQ(refused(add_host(equal(2), host(1), {})).error, EditError::host_exists);
  const EditFault f = refused(add_host(equal(2), "n", {.at = 12345, .buckets = {}}));
  EXPECT_EQ(f.error, EditError::not_a_boundary);
  EXPECT_EQ(f.value, "12345");
}

TEST(MapEdit, RemovesIntoTheNeighbourWithFewerBucketsCountingAsItGoes) {
  const ShardMap map = map_of({{0, 99, "a"}, {100, 199, "x"}, {200, 349, "b"}, {350, 449, "x"}, {450, 65535, "c"}});
  // The first arc goes to a (100 < 150), the second to b (150 < 65086).
  EXPECT_EQ(done(remove_host(map, "x", {})), (Ranges{{0, 199, "a"}, {200, 449, "b"}, {450, 65535, "c"}}));
}

TEST(MapEdit, PassesOverANeighbourThatIsNobody) {
  const ShardMap map = map_of({{0, 9, "nobody.invalid"}, {10, 19, "x"}, {20, 65535, "c"}});
  EXPECT_EQ(done(remove_host(map, "x", {})), (Ranges{{0, 9, "nobody.invalid"}, {10, 65535, "c"}}));
}

TEST(MapEdit, RemovesIntoTheNamedReceiver) {
  EXPECT_EQ(done(remove_host(equal(3), host(1), host(2))), (Ranges{{0, 43690, host(2)}, {43691, 65535, host(3)}}));
  EXPECT_EQ(refused(remove_host(equal(3), host(1), "nowhere")).error, EditError::unknown_host);
  EXPECT_EQ(refused(remove_host(equal(3), host(1), host(1))).error, EditError::invalid_host);
}

TEST(MapEdit, KeepsTheLastHostAndNamesTheNearestOfAnUnknownOne) {
  EXPECT_EQ(refused(remove_host(equal(1), host(1), {})).error, EditError::last_host);
  const ShardMap nobody_and_one = map_of({{0, 9, "nobody.invalid"}, {10, 65535, "a"}});
  EXPECT_EQ(refused(remove_host(nobody_and_one, "a", {})).error, EditError::last_host);
  const EditFault f = refused(remove_host(equal(3), "h2.exmple", {}));
  EXPECT_EQ(f.error, EditError::unknown_host);
  EXPECT_EQ(f.nearest, host(2));
}

TEST(MapEdit, MovesARangeAcrossTheSeam) {
  const ShardMap map = equal(2);
  EXPECT_EQ(done(move_range(map, {65530}, {4}, "n", true)),
            (Ranges{{0, 4, "n"}, {5, 32767, host(1)}, {32768, 65529, host(2)}, {65530, 65535, "n"}}));
  EXPECT_EQ(refused(move_range(map, {0}, {9}, "n", false)).error, EditError::unknown_host);
  EXPECT_EQ(refused(move_range(map, {0}, {9}, "N", true)).error, EditError::invalid_host);
  EXPECT_EQ(done(move_range(map, {0}, {32767}, "nobody.invalid", false)).front().host, "nobody.invalid");
}

TEST(MapEdit, RebalancesInRingOrderAndLeavesABalancedMapAlone) {
  const ShardMap three = add(add(equal(1), host(2)), host(3));
  EXPECT_EQ(done(rebalance(three)), three.ranges());
  const ShardMap skewed = map_of(done(move_range(three, {0}, {5000}, host(3), false)));
  const Ranges even = done(rebalance(skewed));
  EXPECT_EQ(even, (Ranges{{0, 21845, host(3)}, {21846, 43690, host(1)}, {43691, 65535, host(2)}}));
  EXPECT_EQ(refused(rebalance(map_of({{0, 65535, "nobody.invalid"}}))).error, EditError::last_host);
}

TEST(MapEdit, MergesRangesBeforeAndAfterAnEdit) {
  const ShardMap split = map_of({{0, 9, "a"}, {10, 19, "a"}, {20, 65535, "b"}});
  EXPECT_FALSE(is_merged(split.ranges()));
  EXPECT_EQ(merged(split.ranges()), (Ranges{{0, 19, "a"}, {20, 65535, "b"}}));
  EXPECT_EQ(refused(add_host(split, "n", {.at = 10, .buckets = {}})).error, EditError::not_a_boundary);
  EXPECT_EQ(done(rebalance(map_of({{0, 9, "a"}, {10, 32767, "a"}, {32768, 65535, "b"}}))).size(), 2u);
}

// ---- properties

void expect_only_these_moved(const ShardMap& before, const ShardMap& after, const std::set<std::string>& from,
                             const std::set<std::string>& to) {
  for (const Move& m : moves_between(before, after)) {
    EXPECT_TRUE(from.empty() || from.contains(m.from)) << m.from;
    EXPECT_TRUE(to.empty() || to.contains(m.to)) << m.to;
  }
}

TEST(MapEdit, AnAdditionMovesExactlyItsShareKeepsEveryArcAndIsUndoneByARemoval) {
  SeededRandom random(3);
  for (int round = 0; round < 2000; ++round) {
    const ShardMap before = random_map(random, {1}, 12, 5, round % 3 == 0);
    const auto hosts_before = shares(before);
    AddOptions options;
    if (random.below(2) == 0) {
      const Ranges lows = merged(before.ranges());
      options.at = lows[random.below(lows.size())].low;
    }
    if (random.below(2) == 0) options.buckets = static_cast<std::uint32_t>(1 + random.below(30000));
    const auto edited = add_host(before, "new.example", options);
    if (std::holds_alternative<EditFault>(edited)) continue;  // asked for more than there is
    const ShardMap after = map_of(std::get<Ranges>(edited));
    EXPECT_TRUE(is_merged(after.ranges()));
    expect_only_these_moved(before, after, {}, {"new.example"});
    const auto hosts_after = shares(after);
    std::size_t k = 1;
    for (const auto& [h, share] : hosts_before) {
      k += !is_nobody(h);
      ASSERT_TRUE(hosts_after.contains(h)) << "lost its last bucket";
      EXPECT_GE(hosts_after.at(h).arcs, share.arcs);
    }
    const std::uint32_t got = hosts_after.at("new.example").buckets;
    if (options.buckets) {
      EXPECT_EQ(got, *options.buckets);
    } else {
      EXPECT_LE(got, kBucketCount / k);
    }
    EXPECT_EQ(got, moved_buckets(moves_between(before, after)));
  }
}

TEST(MapEdit, ARemovalMovesOnlyWhatTheLeaverHeldToItsNeighbours) {
  SeededRandom random(4);
  for (int round = 0; round < 2000; ++round) {
    const ShardMap before = random_map(random, {1}, 20, 6, round % 3 == 0);
    const std::string leaver = before.hosts()[random.below(before.hosts().size())];
    const auto edited = remove_host(before, leaver, {});
    if (std::holds_alternative<EditFault>(edited)) continue;
    const ShardMap after = map_of(std::get<Ranges>(edited));
    EXPECT_TRUE(is_merged(after.ranges()));
    expect_only_these_moved(before, after, {leaver}, {});
    EXPECT_FALSE(shares(after).contains(leaver));
    std::set<std::uint32_t> lows_before;
    for (const Range& r : merged(before.ranges())) lows_before.insert(r.low);
    for (const Range& r : after.ranges()) EXPECT_TRUE(lows_before.contains(r.low)) << "a boundary that was not there";
  }
}

TEST(MapEdit, RemovingWhatWasJustAddedRestoresTheMapOfTwoEqualHosts) {
  for (std::uint32_t n = 1; n < 30000; n += 977) {
    const ShardMap before = equal(2);
    const ShardMap after = add(before, "n", {.at = {}, .buckets = n});
    const auto moves = moves_between(before, after);
    std::vector<Move> back;
    for (const Move& m : moves) back.push_back({m.low, m.high, m.to, m.from});
    EXPECT_EQ(laid_over(after, back), before.ranges());
  }
}

TEST(MapEdit, ARangeMovedAwayAndBackRestoresTheMap) {
  SeededRandom random(5);
  for (int round = 0; round < 500; ++round) {
    const ShardMap before = map_of(merged(random_ranges(random, 10, 4, true)));
    const Bucket low{static_cast<std::uint16_t>(random.below(kBucketCount))};
    const Bucket high{static_cast<std::uint16_t>(random.below(kBucketCount))};
    const ShardMap after = map_of(done(move_range(before, low, high, "z.example", true)));
    const auto moves = moves_between(before, after);
    EXPECT_EQ(moved_buckets(moves), (high.value - std::uint32_t{low.value} + kBucketCount) % kBucketCount + 1);
    std::vector<Move> back;
    for (const Move& m : moves) back.push_back({m.low, m.high, m.to, m.from});
    EXPECT_EQ(laid_over(after, back), before.ranges());
  }
}

TEST(MapEdit, RebalancingTwiceChangesNothingTheSecondTime) {
  SeededRandom random(6);
  for (int round = 0; round < 500; ++round) {
    const ShardMap before = random_map(random, {1}, 12, 6, true);
    const auto edited = rebalance(before);
    if (std::holds_alternative<EditFault>(edited)) continue;
    const ShardMap after = map_of(std::get<Ranges>(edited));
    EXPECT_EQ(done(rebalance(after)), after.ranges());
    std::uint32_t least = kBucketCount, most = 0;
    for (const auto& [h, share] : shares(after)) {
      EXPECT_EQ(share.arcs, 1u);
      EXPECT_FALSE(is_nobody(h));
      least = std::min(least, share.buckets);
      most = std::max(most, share.buckets);
    }
    EXPECT_LE(most - least, 1u);
  }
}

TEST(MapDiff, ListsMaximalRunsThatTurnTheOneIntoTheOther) {
  SeededRandom random(7);
  for (int round = 0; round < 1000; ++round) {
    const ShardMap a = random_map(random, {1}, 15, 4, true), b = random_map(random, {2}, 15, 4, true);
    const auto moves = moves_between(a, b);
    EXPECT_EQ(laid_over(a, moves), merged(b.ranges()));
    for (std::size_t i = 0; i < moves.size(); ++i) {
      EXPECT_NE(moves[i].from, moves[i].to);
      EXPECT_LE(moves[i].low, moves[i].high);
      if (i == 0) continue;
      EXPECT_LT(moves[i - 1].high, moves[i].low);
      EXPECT_FALSE(moves[i - 1].high + 1 == moves[i].low && moves[i - 1].from == moves[i].from &&
                   moves[i - 1].to == moves[i].to);
    }
    EXPECT_TRUE(moves_between(a, a).empty());
  }
}

TEST(MapDiff, ForecastsRoomsOnlyWhenEveryLosingHostAnswered) {
  const ShardMap map = equal(2);
  const std::vector<Move> moves{{0, 8191, host(1), "n"}, {32768, 32768, host(2), "n"}};
  const Forecast unknown = forecast(map, moves, {{host(1), 100}}, seconds(20), 10);
  EXPECT_FALSE(unknown.rooms_affected);
  EXPECT_DOUBLE_EQ(unknown.convergence_seconds, 20);
  const Forecast known = forecast(map, moves, {{host(1), 101}, {host(2), 1}}, seconds(20), 10);
  EXPECT_EQ(known.rooms_affected, 26u + 1u);
  EXPECT_DOUBLE_EQ(known.convergence_seconds, 22.6);
  const Forecast nothing = forecast(map, {}, {}, seconds(20), 10);
  EXPECT_EQ(nothing.rooms_affected, 0u);
  EXPECT_DOUBLE_EQ(nothing.convergence_seconds, 0);
}

}  // namespace
}  // namespace tandem::shard
