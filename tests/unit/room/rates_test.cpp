#include "tandem/room/proof_rate.hpp"
#include "tandem/room/rate_windows.hpp"
#include "tandem/room/steady_wall.hpp"

#include <gtest/gtest.h>

namespace tandem::room {
namespace {

constexpr TimePoint kRatesStart{std::chrono::hours(5)};

ClientKey client(std::uint32_t n) {
  return {{4, static_cast<std::uint8_t>(n >> 24), static_cast<std::uint8_t>(n >> 16), static_cast<std::uint8_t>(n >> 8),
           static_cast<std::uint8_t>(n)}};
}

TEST(RateWindows, SaysInHowLongAClientMayAskAgain) {
  RateWindows rates({1, 2});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rates.charge(client(1), 3, kRatesStart), Duration::zero());
  EXPECT_EQ(rates.charge(client(1), 3, kRatesStart + seconds(20)), seconds(40));
  EXPECT_EQ(rates.charge(client(2), 3, kRatesStart + seconds(20)), Duration::zero());
  EXPECT_EQ(rates.charge(client(1), 3, kRatesStart + seconds(60)), Duration::zero());
}

TEST(RateWindows, StayBoundedUnderAFloodAndEmptyWhenItIsOver) {
  RateWindows rates({1, 2}, seconds(60), 1000);
  for (std::uint32_t n = 0; n < 100000; ++n) {
    EXPECT_EQ(rates.charge(client(n), 1, kRatesStart), Duration::zero());
    ASSERT_LE(rates.clients(), 1000u);
  }
  EXPECT_EQ(rates.charge(client(99999), 1, kRatesStart), seconds(60)) << "the latest are remembered";
  EXPECT_EQ(rates.charge(client(0), 1, kRatesStart), Duration::zero()) << "the oldest made room";
  rates.purge(kRatesStart + seconds(60));
  EXPECT_EQ(rates.clients(), 0u);
}

TEST(ProofRate, JudgesFortyInAnyTenSecondsAndIsNeverLockedByRefusals) {
  ProofRate rate;
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(rate.admit(kRatesStart + milliseconds(10) * i));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(rate.admit(kRatesStart + seconds(1) + milliseconds(80) * i));
  EXPECT_TRUE(rate.is_spent(kRatesStart + seconds(9)));
  EXPECT_TRUE(rate.admit(kRatesStart + seconds(10)));
  EXPECT_FALSE(rate.admit(kRatesStart + seconds(10)));
  rate.forget(kRatesStart + seconds(30));
  EXPECT_TRUE(rate.empty());
  EXPECT_EQ(rate.idle_at(), kNever);
}

struct Clock {
  SteadyWall wall;
  Now now{kRatesStart, WallTime{} + std::chrono::hours(24 * 20000)};
  void pass(Duration d, Duration step = {}) {
    now.mono += d;
    now.wall += std::chrono::duration_cast<seconds>(d + step);
    wall.observe(now);
  }
};

TEST(SteadyWall, FollowsAClockThatGoesRight) {
  Clock c;
  c.pass({});
  for (int i = 0; i < 1000; ++i) c.pass(seconds(7));
  EXPECT_EQ(c.wall.now(), c.now.wall);
}

TEST(SteadyWall, CatchesUpWithAForwardStepAtOneSecondASecond) {
  Clock c;
  c.pass({});
  const WallTime before = c.wall.now();
  c.pass(seconds(1), std::chrono::hours(24 * 365 * 70));
  EXPECT_LE(c.wall.now() - before, seconds(2));
  c.pass(seconds(100));
  EXPECT_EQ(c.wall.now() - before, seconds(202));
}

TEST(SteadyWall, BelievesTheClockAgainAfterASuspension) {
  Clock c;
  c.pass({});
  c.pass(seconds(1), seconds(600));
  c.pass(seconds(300));
  EXPECT_LT(c.wall.now(), c.now.wall);
  c.pass(seconds(300));
  EXPECT_EQ(c.wall.now(), c.now.wall);
}

TEST(SteadyWall, FollowsAStepBackAtOnce) {
  Clock c;
  c.pass({});
  c.pass(seconds(1), -std::chrono::hours(24 * 365 * 30));
  EXPECT_EQ(c.wall.now(), c.now.wall);
}

}  // namespace
}  // namespace tandem::room
