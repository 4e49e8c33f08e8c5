#include "tandem/app/qr.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

TEST(Qr, DrawsASquareWithAQuietZone) {
  const auto drawn = draw_qr("iterm2://pair?v=1");
  ASSERT_TRUE(drawn);
  // 17 bytes fit version 1 at the lowest correction: 21 modules wide; four of quiet zone on each side, two modules a
  // line.
  constexpr std::ptrdiff_t kWide = 21 + 8;
  EXPECT_EQ(std::count(drawn->begin(), drawn->end(), '\n'), (kWide + 1) / 2);
  const std::string first = drawn->substr(0, drawn->find('\n'));
  EXPECT_EQ(std::count(first.begin(), first.end(), ' '), kWide) << "the quiet zone is empty";
}

TEST(Qr, RefusesWhatDoesNotFit) { EXPECT_FALSE(draw_qr(std::string(4000, 'x'))); }

}  // namespace
}  // namespace tandem::app
