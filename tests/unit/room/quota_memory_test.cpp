#include "tandem/room/quota_memory.hpp"

#include <gtest/gtest.h>

namespace tandem::room {
namespace {

constexpr TimePoint kQuotaStart{std::chrono::hours(5)};
const MeterLimits kLimits;

RoomName quota_room(std::uint8_t n) {
  std::array<std::uint8_t, 32> d{};
  d[31] = n;
  return RoomName(d);
}

Meter used(std::uint64_t bytes, TimePoint when = kQuotaStart) {
  Meter m(&kLimits);
  static_cast<void>(m.account(bytes, 1, when));
  return m;
}

TEST(QuotaMemory, GivesBackWhatItWasGivenOnce) {
  QuotaMemory memory({1, 2});
  memory.remember(quota_room(1), used(10));
  ASSERT_NE(memory.find(quota_room(1)), nullptr);
  EXPECT_EQ(memory.recall(quota_room(1))->window_bytes(), 10u);
  EXPECT_FALSE(memory.recall(quota_room(1)));
  EXPECT_EQ(memory.size(), 0u);
}

TEST(QuotaMemory, ForgetsTheLongestRestedOverItsBound) {
  QuotaMemory memory({1, 2}, 3);
  for (std::uint8_t n = 0; n < 5; ++n) memory.remember(quota_room(n), used(n));
  EXPECT_EQ(memory.size(), 3u);
  EXPECT_FALSE(memory.recall(quota_room(1)));
  EXPECT_TRUE(memory.recall(quota_room(2)));
}

TEST(QuotaMemory, ForgetsWindowsThatAreOverAndRoomsThatMoved) {
  QuotaMemory memory({1, 2});
  memory.remember(quota_room(1), used(1));
  memory.remember(quota_room(2), used(1, kQuotaStart + std::chrono::hours(1)));
  memory.remember(quota_room(3), used(1, kQuotaStart + std::chrono::hours(1)));
  memory.purge(kQuotaStart + std::chrono::hours(24));
  EXPECT_FALSE(memory.find(quota_room(1)));
  memory.forget_if([](const RoomName& room) { return room.bucket() == Bucket{2}; });
  EXPECT_FALSE(memory.find(quota_room(2)));
  EXPECT_TRUE(memory.find(quota_room(3)));
}

}  // namespace
}  // namespace tandem::room
