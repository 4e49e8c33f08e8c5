#include "tandem/client/backoff.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

TEST(Backoff, BoundsAreThreeSecondsThenDoubleUpToThirty) {
  const int expected_seconds[] = {3, 4, 8, 16, 30, 30, 30};
  for (int failures = 1; failures <= 7; ++failures)
    EXPECT_EQ(backoff_bound(failures), seconds(expected_seconds[failures - 1])) << failures;
  EXPECT_EQ(backoff_bound(1000000), seconds(30));
}

TEST(Backoff, WaitsAreUniformBelowTheBound) {
  SeededRandom random(7);
  for (int failures = 1; failures <= 6; ++failures) {
    double sum = 0;
    Duration longest{};
    constexpr int tries = 4000;
    for (int i = 0; i < tries; ++i) {
      Backoff backoff;
      for (int earlier = 1; earlier < failures; ++earlier) backoff.count();
      const Duration wait = backoff.next(random);
      ASSERT_GE(wait, Duration::zero());
      ASSERT_LT(wait, backoff_bound(failures));
      sum += to_seconds(wait);
      longest = std::max(longest, wait);
    }
    const double bound = to_seconds(backoff_bound(failures));
    EXPECT_NEAR(sum / tries, bound / 2, bound * 0.03) << failures;
    EXPECT_GT(to_seconds(longest), bound * 0.98) << failures;
  }
}

TEST(Backoff, CountsFailuresOfAllClassesUntilReset) {
  SeededRandom random(1);
  Backoff backoff;
  backoff.count();
  (void)backoff.next(random);
  EXPECT_EQ(backoff.failures(), 2);
  backoff.reset();
  EXPECT_EQ(backoff.failures(), 0);
}

}  // namespace
}  // namespace tandem::client
