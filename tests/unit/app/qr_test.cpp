#include "tandem/app/qr.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

TEST(Qr, DrawsASquareWithAQuietZone) {
  const auto drawn = draw_qr("iterm2://pair?v=1");
  ASSERT_TRUE(drawn);
  // Version 2 is 25 modules wide; four of quiet zone on each side, two modules a line.
  EXPECT_EQ(std::count(drawn->begin(), drawn->end(), '\n'), (25 + 8 + 1) / 2);
  const std::string first = drawn->substr(0, drawn->find('\n'));
  EXPECT_EQ(std::count(first.begin(), first.end(), ' '), 25 + 8) << "the quiet zone is empty";
}

TEST(Qr, RefusesWhatDoesNotFit) { EXPECT_FALSE(draw_qr(std::string(4000, 'x'))); }

}  // namespace
}  // namespace tandem::app
