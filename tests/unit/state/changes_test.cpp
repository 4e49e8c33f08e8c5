#include "tandem/state/changes.hpp"

#include <gtest/gtest.h>

namespace tandem::state {
namespace {

WallTime changed_at(std::int64_t s) { return WallTime(seconds(s)); }

RoomName changed_room(std::uint8_t n) {
  std::array<std::uint8_t, 32> digest{};
  digest[0] = n;
  return RoomName(digest);
}

relay::StoredRoom stored(std::int64_t last) {
  return {.verifier = {1}, .registrant = std::nullopt, .last_activity = changed_at(last)};
}

TEST(RoomKeys, BeginWithTheTagAndHideTheName) {
  const RoomKey key = key_of(changed_room(7));
  EXPECT_EQ(hex_encode(key).substr(0, 8), changed_room(7).tag());
  EXPECT_NE(hex_encode(key), changed_room(7).hex());
}

TEST(Changes, KeepTheNewestWordOnARoom) {
  Changes c;
  const RoomKey key = key_of(changed_room(1));
  EXPECT_TRUE(c.empty());
  c.put(key, stored(10));
  c.touch(key, changed_at(20));
  EXPECT_EQ(c.rooms.at(key)->last_activity, changed_at(20));
  c.touch(key, changed_at(5));
  EXPECT_EQ(c.rooms.at(key)->last_activity, changed_at(20)) << "time never runs backwards";
  c.wipe(key);
  EXPECT_EQ(c.rooms.at(key), std::nullopt);
  c.touch(key, changed_at(30));
  EXPECT_EQ(c.rooms.at(key), std::nullopt) << "a touch does not bring it back";
  c.put(key, stored(40));
  EXPECT_EQ(c.rooms.at(key)->last_activity, changed_at(40));
}

TEST(Changes, TouchOfAnUnknownRoomWaitsForTheDiskAndIsReplacedByAPut) {
  Changes c;
  const RoomKey key = key_of(changed_room(1));
  c.touch(key, changed_at(20));
  c.touch(key, changed_at(10));
  EXPECT_EQ(c.touches.at(key), changed_at(20));
  c.put(key, stored(5));
  EXPECT_TRUE(c.touches.empty());
  c.wipe(key);
  EXPECT_TRUE(c.touches.empty());
}

TEST(Changes, CountersOnlyGrow) {
  Changes c;
  c.count({1}, 5, changed_at(1));
  c.count({1}, 3, changed_at(2));
  EXPECT_EQ(c.counters.at({1}).value, 5u);
  EXPECT_EQ(c.counters.at({1}).used, changed_at(2));
}

TEST(Changes, SweepHereForgetsWhatIsIdleSinceBefore) {
  Changes c;
  c.put(key_of(changed_room(1)), stored(9));
  c.put(key_of(changed_room(2)), stored(10));
  c.count({1}, 1, changed_at(4));
  c.count({2}, 1, changed_at(5));
  c.sweep_here({changed_at(10), changed_at(5)});
  EXPECT_FALSE(c.rooms.contains(key_of(changed_room(1))));
  EXPECT_TRUE(c.rooms.contains(key_of(changed_room(2))));
  EXPECT_FALSE(c.counters.contains({1}));
  EXPECT_TRUE(c.counters.contains({2}));
}

TEST(Changes, LaterSweepsTakeInEarlierOnes) {
  Changes c;
  c.sweep_later({changed_at(10), changed_at(1)});
  c.sweep_later({changed_at(8), changed_at(2)});
  EXPECT_EQ(c.sweep->rooms_before, changed_at(10));
  EXPECT_EQ(c.sweep->counters_before, changed_at(2));
}

TEST(Changes, BoundKeepsTheRoomsLastActiveAndEveryWipe) {
  Changes c;
  for (std::uint8_t n = 0; n < 100; ++n) c.put(key_of(changed_room(n)), stored(n));
  c.wipe(key_of(changed_room(3)));
  for (std::uint8_t n = 0; n < 100; ++n) c.count({n}, 1, changed_at(7));
  c.bound(10);
  EXPECT_EQ(c.rooms.size(), 10u);
  EXPECT_EQ(c.counters.size(), 10u);
  EXPECT_TRUE(c.rooms.contains(key_of(changed_room(99))));
  EXPECT_TRUE(c.rooms.contains(key_of(changed_room(91))));
  EXPECT_FALSE(c.rooms.contains(key_of(changed_room(90))));
  EXPECT_TRUE(c.rooms.contains(key_of(changed_room(3))));
}

}  // namespace
}  // namespace tandem::state
