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

TEST(Meter, NullLimitsAreOff) {
  MeterLimits limits;
  limits.messages_per_second = limits.bytes_per_window = UINT64_MAX;
  Meter m(&limits);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(m.account(UINT64_MAX / 2, UINT32_MAX, kStart), Verdict::ok);
}

}  // namespace
}  // namespace tandem::room
