#include "tandem/room/registry.hpp"

#include "tandem/core/random.hpp"

#include <map>

#include <gtest/gtest.h>

namespace tandem::room {
namespace {

RoomName name(std::uint32_t n, std::uint16_t bucket = 7) {
  std::array<std::uint8_t, 32> d{};
  std::memcpy(d.data(), &n, sizeof n);
  d[30] = static_cast<std::uint8_t>(bucket >> 8);
  d[31] = static_cast<std::uint8_t>(bucket);
  return RoomName(d);
}

TimePoint at(std::uint64_t ms) { return TimePoint(milliseconds(ms)); }

TEST(Registry, GivesOutDeadlinesInOrderWhateverChanges) {
  Policy policy;
  Registry registry({1, 2});
  SeededRandom random(5);
  std::map<std::uint32_t, TimePoint> model;
  for (int i = 0; i < 5000; ++i) {
    const auto n = static_cast<std::uint32_t>(random.below(200));
    if (random.below(5) == 0) {
      if (Entry* e = registry.find(name(n))) registry.erase(*e);
      model.erase(n);
    } else {
      const TimePoint t = random.below(6) == 0 ? kNever : at(random.below(1000));
      registry.settle(registry.get(name(n), policy), t);
      model[n] = t;
    }
    TimePoint nearest = kNever;
    for (const auto& [_, t] : model) nearest = std::min(nearest, t);
    ASSERT_EQ(registry.next_deadline(), nearest);
    ASSERT_EQ(registry.size(), model.size());
  }
  EXPECT_TRUE(registry.is_consistent());
  EXPECT_EQ(registry.next_due(TimePoint(Duration(-1))), nullptr);
}

TEST(Registry, ListsTheRoomsOfABucketAndOnlyThose) {
  Policy policy;
  Registry registry({1, 2});
  for (std::uint32_t i = 0; i < 10; ++i)
    registry.settle(registry.get(name(i, i % 2 == 0 ? std::uint16_t{7} : std::uint16_t{8}), policy), kNever);
  std::size_t n = 0;
  for (Entry* e = registry.first_in(Bucket{7}); e; e = Registry::next_in(*e)) {
    EXPECT_EQ(e->room.name().bucket(), Bucket{7});
    ++n;
  }
  EXPECT_EQ(n, 5u);
  EXPECT_EQ(registry.first_in(Bucket{9}), nullptr);
}

TEST(Registry, SaysWhoHasRestedLongestWhenTooManyDo) {
  Policy policy;
  Registry registry({1, 2}, 3);
  for (std::uint32_t i = 0; i < 3; ++i) registry.settle(registry.get(name(i), policy), kNever);
  EXPECT_EQ(registry.overflow(), nullptr);
  Entry& busy = registry.get(name(9), policy);
  busy.busy = 1;
  registry.settle(busy, kNever);
  EXPECT_EQ(registry.overflow(), nullptr) << "who is waited for does not rest";
  registry.settle(registry.get(name(4), policy), kNever);
  ASSERT_NE(registry.overflow(), nullptr);
  EXPECT_EQ(registry.overflow()->room.name(), name(0));
  registry.erase(*registry.overflow());
  EXPECT_EQ(registry.overflow(), nullptr);
  busy.busy = 0;
  registry.settle(busy, kNever);
  EXPECT_TRUE(registry.is_consistent());
}

TEST(Secrets, AreSingleUseTimedAndCapped) {
  SeededRandom random(1);
  Secrets::Tickets pool;
  const auto a = pool.issue(nullptr, random, at(0)), b = pool.issue(nullptr, random, at(1000));
  EXPECT_NE(a, b);
  EXPECT_TRUE(pool.find(a, at(299999)));
  EXPECT_FALSE(pool.find(a, at(300000)));
  EXPECT_TRUE(pool.spend(b, at(300000)));
  EXPECT_FALSE(pool.spend(b, at(300000)));
  EXPECT_FALSE(pool.spend(Bytes(23, 0), at(0)));
  while (!pool.is_full()) static_cast<void>(pool.issue(nullptr, random, at(400000)));
  EXPECT_EQ(pool.size(), 16u);
  pool.purge(at(500000));
  EXPECT_EQ(pool.size(), 15u);
  pool.purge(at(700000));
  EXPECT_EQ(pool.next_expiry(), kNever);
}

}  // namespace
}  // namespace tandem::room
