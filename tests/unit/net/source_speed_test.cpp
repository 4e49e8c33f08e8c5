#include "tandem/net/source_speed.hpp"

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

constexpr std::size_t kBuffer = 1024 * 1024;

struct Source {
  SourceSpeed speed;
  TimePoint now{std::chrono::hours(1000)};
  int changes = 0;

  // One buffer's worth in so long, in four pieces.
  void fill_in(Duration wall) {
    for (int i = 0; i < 4; ++i) {
      now += wall / 4;
      if (speed.took(kBuffer / 4, kBuffer) && speed.judge(now, kBuffer)) ++changes;
    }
  }
};

TEST(SourceSpeed, IsSlowUntilABufferWasFilledFast) {
  Source s;
  s.fill_in(milliseconds(1));  // since the clock's beginning: not yet known
  EXPECT_FALSE(s.speed.fast());
  s.fill_in(SourceSpeed::kFast);
  EXPECT_TRUE(s.speed.fast());
  EXPECT_EQ(s.changes, 1);
}

TEST(SourceSpeed, StaysWhatItIsInBetween) {
  Source s;
  s.fill_in(milliseconds(1));
  s.fill_in(SourceSpeed::kFast + milliseconds(4));
  EXPECT_FALSE(s.speed.fast());
  s.fill_in(SourceSpeed::kFast);
  s.fill_in(SourceSpeed::kSlow);
  EXPECT_TRUE(s.speed.fast());
  s.fill_in(SourceSpeed::kSlow + milliseconds(4));
  EXPECT_FALSE(s.speed.fast());
  EXPECT_EQ(s.changes, 2);
}

TEST(SourceSpeed, IsSlowAgainThoughNothingMoreComes) {
  Source s;
  s.fill_in(milliseconds(1));
  s.fill_in(milliseconds(1));
  ASSERT_TRUE(s.speed.fast());
  EXPECT_FALSE(s.speed.judge(s.now + SourceSpeed::kSlow, kBuffer)) << "no verdict yet";
  EXPECT_TRUE(s.speed.fast());
  EXPECT_TRUE(s.speed.judge(s.now + SourceSpeed::kSlow + milliseconds(1), kBuffer));
  EXPECT_FALSE(s.speed.fast());
}

TEST(SourceSpeed, AnUnfinishedBufferIsNoVerdict) {
  Source s;
  s.fill_in(milliseconds(1));
  EXPECT_FALSE(s.speed.took(kBuffer - 1, kBuffer));
  EXPECT_FALSE(s.speed.judge(s.now + milliseconds(1), kBuffer));
  EXPECT_FALSE(s.speed.fast());
  EXPECT_TRUE(s.speed.took(1, kBuffer));
  EXPECT_TRUE(s.speed.judge(s.now + milliseconds(2), kBuffer));
}

}  // namespace
}  // namespace tandem::net
