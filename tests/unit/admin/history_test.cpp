#include "tandem/admin/history.hpp"

#include <gtest/gtest.h>

namespace tandem::admin {
namespace {

TimePoint at(int s) { return TimePoint{seconds(1000 + s)}; }

TEST(History, KnowsNothingBeforeTwoSamples) {
  History h;
  EXPECT_EQ(h.bytes_per_second(), 0);
  h.sample(500, 0, at(0));
  EXPECT_EQ(h.bytes_per_second(), 0);
  EXPECT_TRUE(h.last_hour().empty());
}

TEST(History, AveragesTheLastFiveSeconds) {
  History h;
  for (int s = 0; s <= 20; ++s) h.sample(static_cast<std::uint64_t>(s) * 1000, 0, at(s));
  EXPECT_DOUBLE_EQ(h.bytes_per_second(), 1000);
  for (int s = 21; s <= 26; ++s) h.sample(20000, 0, at(s));
  EXPECT_DOUBLE_EQ(h.bytes_per_second(), 0);
}

TEST(History, HoldsSixtyMinutesOldestFirst) {
  History h;
  std::uint64_t total = 0;
  for (int s = 0; s <= 70 * 60; ++s) {
    h.sample(total, 0, at(s));
    total += static_cast<std::uint64_t>(s / 60);  // minute m runs at m bytes a second
  }
  const auto hour = h.last_hour();
  ASSERT_EQ(hour.size(), 60u);
  EXPECT_NEAR(hour.front(), 10, 0.1);
  EXPECT_NEAR(hour.back(), 69, 0.1);
}

TEST(History, SpreadsASleepEvenlyAndLosesNoByte) {
  History h;
  h.sample(0, 0, at(0));
  h.sample(180000, 0, at(180));
  const auto hour = h.last_hour();
  ASSERT_EQ(hour.size(), 3u);
  for (const double rate : hour) EXPECT_NEAR(rate, 1000, 1);
}

TEST(History, RemembersHowManyRoomsADrainBeganWith) {
  History h;
  h.sample(0, 0, at(0));
  EXPECT_EQ(h.drain_began_with(), 0u);
  h.sample(0, 40, at(1));
  h.sample(0, 50, at(2));
  h.sample(0, 3, at(3));
  EXPECT_EQ(h.drain_began_with(), 50u);
  h.sample(0, 0, at(4));
  EXPECT_EQ(h.drain_began_with(), 0u);
}

}  // namespace
}  // namespace tandem::admin
