#include "tandem/net/rate_bucket.hpp"

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

const TimePoint kStart{std::chrono::hours(1)};

TEST(RateBucket, AllowsASecondsWorthAtOnceAndThenItsRate) {
  RateBucket bucket(1'000'000, kStart);
  EXPECT_EQ(bucket.available(kStart + seconds(100)), 1'000'000u);
  bucket.spend(1'000'000);
  EXPECT_EQ(bucket.available(kStart + seconds(100)), 0u);
  std::uint64_t total = 0;
  TimePoint now = kStart + seconds(100);
  while (now < kStart + seconds(110)) {
    now = bucket.next(now);
    const std::uint64_t n = bucket.available(now);
    ASSERT_GT(n, 0u) << "woke too early";
    bucket.spend(n);
    total += n;
  }
  EXPECT_NEAR(static_cast<double>(total), 10'000'000, 100'000);
}

TEST(RateBucket, WaitsLongerAfterAnOverdraft) {
  RateBucket bucket(10'000, kStart);
  bucket.spend(30'000);
  EXPECT_GT(bucket.next(kStart), kStart + seconds(2));
  EXPECT_EQ(bucket.available(kStart + seconds(2)), 0u);
  EXPECT_GT(bucket.available(kStart + seconds(3)), 0u);
}

TEST(RateBucket, WorksAtAFewBytesASecond) {
  RateBucket bucket(2, kStart);
  EXPECT_EQ(bucket.available(kStart), 2u);
  bucket.spend(2);
  EXPECT_EQ(bucket.available(kStart + milliseconds(400)), 0u);
  EXPECT_EQ(bucket.available(kStart + milliseconds(600)), 1u);
}

TEST(RateBucket, TakesANewRateWithoutANewBurst) {
  RateBucket bucket(1'000'000, kStart);
  bucket.set_rate(1'000, kStart);
  EXPECT_EQ(bucket.available(kStart), 1'000u);
  bucket.set_rate(1'000'000, kStart);
  EXPECT_LT(bucket.available(kStart + milliseconds(10)), 20'000u);
}

}  // namespace
}  // namespace tandem::net
