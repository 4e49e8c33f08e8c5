#include "tandem/app/stop_clock.hpp"

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

void tell(StopClock& clock, CloseReason reason) {
  clock.observe(observed::SocketEnded{{}, {}, true, Role::mac, Initiator::relay, 1001, reason, {}, 0, 0});
}

TEST(StopClock, StaysUntilTheHoldOfTheNextProcessCoversTheRestOfTheFirstWait) {
  StopClock clock;
  const TimePoint before = net::monotonic_now();
  tell(clock, CloseReason::server_shutting_down);
  EXPECT_GE(clock.stay_until(seconds(2)), before + seconds(1));
  EXPECT_LE(clock.stay_until(seconds(2)), net::monotonic_now() + seconds(1));
  EXPECT_GE(clock.stay_until(milliseconds(500)), before + milliseconds(2500));
}

TEST(StopClock, DoesNotWaitForNobodyForALongHoldOrForMoreThanABacklog) {
  StopClock clock;
  EXPECT_EQ(clock.stay_until(seconds(2)), TimePoint{});
  tell(clock, CloseReason::peer_gone);
  EXPECT_EQ(clock.stay_until(seconds(2)), TimePoint{});
  tell(clock, CloseReason::server_shutting_down);
  EXPECT_EQ(clock.stay_until(seconds(3)), TimePoint{});
  EXPECT_EQ(clock.stay_until(seconds(0)), TimePoint{});
  for (int i = 0; i < 4096; ++i) tell(clock, CloseReason::server_shutting_down);
  EXPECT_EQ(clock.stay_until(seconds(2)), TimePoint{});
}

}  // namespace
}  // namespace tandem::app
