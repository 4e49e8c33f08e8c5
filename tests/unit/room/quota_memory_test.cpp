#include "tandem/room/quota_memory.hpp"

#include <gtest/gtest.h>

namespace tandem::room {
namespace {

constexpr TimePoint kStart{std::chrono::hours(5)};
const MeterLimits kLimits;

RoomName name(std::uint8_t n) {
  std::array<std::uint8_t, 32> d{};
  d[31] = n;
  return RoomName(d);
}

Meter used(std::uint64_t bytes, TimePoint when = kStart) {
  Meter m(&kLimits);
  static_cast<void>(m.account(bytes, 1, when));
  return m;
}

TEST(QuotaMemory, GivesBackWhatItWasGivenOnce) {
  QuotaMemory memory({1, 2});
  memory.remember(name(1), used(10));
  ASSERT_NE(memory.find(name(1)), nullptr);
  EXPECT_EQ(memory.recall(name(1))->window_bytes(), 10u);
  EXPECT_FALSE(memory.recall(name(1)));
  EXPECT_EQ(memory.size(), 0u);
}

TEST(QuotaMemory, ForgetsTheLongestRestedOverItsBound) {
  QuotaMemory memory({1, 2}, 3);
  for (std::uint8_t n = 0; n < 5; ++n) memory.remember(name(n), used(n));
  EXPECT_EQ(memory.size(), 3u);
  EXPECT_FALSE(memory.recall(name(1)));
  EXPECT_TRUE(memory.recall(name(2)));
}

TEST(QuotaMemory, ForgetsWindowsThatAreOverAndRoomsThatMoved) {
  QuotaMemory memory({1, 2});
  memory.remember(name(1), used(1));
  memory.remember(name(2), used(1, kStart + std::chrono::hours(1)));
  memory.remember(name(3), used(1, kStart + std::chrono::hours(1)));
  memory.purge(kStart + std::chrono::hours(24));
  EXPECT_FALSE(memory.find(name(1)));
  memory.forget_if([](const RoomName& room) { return room.bucket() == Bucket{2}; });
  EXPECT_FALSE(memory.find(name(2)));
  EXPECT_TRUE(memory.find(name(3)));
}

}  // namespace
}  // namespace tandem::room
