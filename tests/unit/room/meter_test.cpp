#include "tandem/room/meter.hpp"

#include <gtest/gtest.h>

namespace tandem::room {
namespace {

constexpr TimePoint kStart{std::chrono::hours(5)};

TEST(Meter, CountsAllBytesOfAWindowThatItsFirstByteOpens) {
  MeterLimits limits;
  limits.bytes_per_window = 100;
  Meter m(&limits);
  EXPECT_EQ(m.window_end(), kNever);
  EXPECT_EQ(m.account(0, 1, kStart), Verdict::ok);
  EXPECT_EQ(m.window_end(), kNever) << "a message without bytes opens none";
  EXPECT_EQ(m.account(60, 1, kStart + seconds(5)), Verdict::ok);
  EXPECT_EQ(m.window_end(), kStart + seconds(5) + std::chrono::hours(24));
  EXPECT_EQ(m.account(40, 1, kStart + std::chrono::hours(20)), Verdict::ok) << "exactly the quota is not over it";
  EXPECT_FALSE(m.quota_spent(kStart + std::chrono::hours(20)));
  EXPECT_EQ(m.account(1, 1, kStart + std::chrono::hours(20)), Verdict::daily_quota_exceeded);
  EXPECT_TRUE(m.quota_spent(kStart + std::chrono::hours(24)));
  EXPECT_FALSE(m.quota_spent(m.window_end()));
  EXPECT_EQ(m.account(100, 1, kStart + std::chrono::hours(30)), Verdict::ok);
  EXPECT_EQ(m.window_bytes(), 100u);
}

TEST(Meter, NeverClosesWhoStaysAtTheRateAndAlwaysWhoDoublesIt) {
  MeterLimits limits;
  limits.messages_per_second = 500;
  Meter steady(&limits), fast(&limits);
  bool crossed = false;
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(steady.account(1, 1, kStart + milliseconds(2) * i), Verdict::ok);
    crossed = crossed || fast.account(1, 2, kStart + milliseconds(2) * i) != Verdict::ok;
  }
  EXPECT_TRUE(crossed);
}

TEST(Meter, TheVerdictStaysUntilItWasReported) {
  MeterLimits limits;
  limits.messages_per_second = 2;
  Meter m(&limits);
  EXPECT_EQ(m.account(1, 3, kStart), Verdict::frame_rate_exceeded);
  EXPECT_EQ(m.account(0, 0, kStart), Verdict::frame_rate_exceeded);
  m.forgive_rate();
  EXPECT_EQ(m.account(1, 1, kStart), Verdict::ok);
}

TEST(Meter, CountsABacklogForTheTimeItWasSentIn) {
  MeterLimits limits;
  limits.messages_per_second = 100;
  Meter m(&limits);
  EXPECT_EQ(m.account(1, 100, kStart), Verdict::ok);
  m.left_unread(seconds(3), kStart + milliseconds(10));
  EXPECT_EQ(m.account(1, 300, kStart + milliseconds(10)), Verdict::ok) << "a rate that was kept while nobody read";
  EXPECT_EQ(m.account(1, 1, kStart + milliseconds(20)), Verdict::frame_rate_exceeded);

  Meter halting(&limits);
  EXPECT_EQ(halting.account(1, 100, kStart), Verdict::ok);
  for (int i = 1; i <= 300; ++i) halting.left_unread(milliseconds(1), kStart + milliseconds(i));
  EXPECT_EQ(halting.account(1, 30, kStart + milliseconds(300)), Verdict::ok) << "short waits add up";
  EXPECT_EQ(halting.account(1, 1, kStart + milliseconds(300)), Verdict::frame_rate_exceeded);

  Meter late(&limits);
  late.left_unread(seconds(3), kStart);
  EXPECT_EQ(late.account(1, 101, kStart + seconds(1)), Verdict::frame_rate_exceeded) << "a backlog comes at once";
}

TEST(Meter, NullLimitsAreOff) {
  MeterLimits limits;
  limits.messages_per_second = limits.bytes_per_window = UINT64_MAX;
  Meter m(&limits);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(m.account(UINT64_MAX / 2, UINT32_MAX, kStart), Verdict::ok);
}

}  // namespace
}  // namespace tandem::room
