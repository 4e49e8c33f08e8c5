#include "tandem/net/timer_wheel.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

const TimePoint kWheelStart{std::chrono::hours(1000)};
constexpr Duration kSlot{1 << 24};

struct Node : TimerNode {
  int fired = 0;
};

int expire(TimerWheel& wheel, TimePoint now) {
  int n = 0;
  wheel.expire(now, [&](TimerNode& node) {
    ++static_cast<Node&>(node).fired;
    ++n;
  });
  return n;
}

TEST(TimerWheel, FiresAtItsTimeNotBeforeAndAtMostASlotLate) {
  for (const Duration wait : {Duration{1}, Duration(milliseconds(1)), kSlot, kSlot + Duration{1}, Duration(seconds(5)),
                              Duration(seconds(67)), Duration(seconds(69)), Duration(std::chrono::hours(30))}) {
    TimerWheel wheel(kWheelStart);
    Node node;
    const TimePoint due = kWheelStart + wait;
    wheel.set(node, due);
    // As the loop does: asleep until the wheel wants to be called.
    TimePoint now = kWheelStart;
    for (int i = 0; i < 10'000 && node.fired == 0; ++i) {
      ASSERT_NE(wheel.next(), kNever);
      now = std::max(now, wheel.next());
      expire(wheel, now);
    }
    EXPECT_EQ(node.fired, 1);
    EXPECT_GE(now, due);
    EXPECT_LE(now, due + kSlot);
    EXPECT_EQ(expire(wheel, now + std::chrono::hours(1)), 0);
  }
}

TEST(TimerWheel, ForgetsWhatIsCancelledAndMovesWhatIsSetAgain) {
  TimerWheel wheel(kWheelStart);
  Node a, b;
  wheel.set(a, kWheelStart + seconds(1));
  wheel.set(b, kWheelStart + seconds(1));
  wheel.cancel(a);
  wheel.set(b, kWheelStart + seconds(3));
  EXPECT_EQ(expire(wheel, kWheelStart + seconds(2)), 0);
  EXPECT_EQ(expire(wheel, kWheelStart + seconds(4)), 1);
  EXPECT_EQ(a.fired, 0);
  EXPECT_FALSE(a.armed());
  wheel.set(a, kNever);
  EXPECT_FALSE(a.armed());
}

TEST(TimerWheel, ServesManyOfOneSlotInOneCall) {
  TimerWheel wheel(kWheelStart);
  std::vector<Node> nodes(1000);
  for (Node& node : nodes) wheel.set(node, kWheelStart + seconds(30));
  EXPECT_EQ(expire(wheel, kWheelStart + seconds(29)), 0);
  EXPECT_EQ(expire(wheel, kWheelStart + seconds(30) + kSlot), 1000);
}

TEST(TimerWheel, LetsACallbackSetAndCancelOthers) {
  TimerWheel wheel(kWheelStart);
  Node a, b, c;
  wheel.set(a, kWheelStart + seconds(1));
  wheel.set(b, kWheelStart + seconds(1));
  std::vector<TimerNode*> seen;
  wheel.expire(kWheelStart + seconds(2), [&](TimerNode& node) {
    seen.push_back(&node);
    wheel.cancel(&node == &a ? b : a);
    wheel.set(c, kWheelStart + seconds(2) + milliseconds(1));
  });
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(expire(wheel, kWheelStart + seconds(3)), 1);
  EXPECT_EQ(c.fired, 1);
}

TEST(TimerWheel, SurvivesALongSleep) {
  TimerWheel wheel(kWheelStart);
  std::vector<Node> nodes(100);
  for (std::size_t i = 0; i < nodes.size(); ++i) wheel.set(nodes[i], kWheelStart + seconds(i * 3));
  EXPECT_EQ(expire(wheel, kWheelStart + std::chrono::hours(10)), 100);
  EXPECT_EQ(wheel.next(), kNever);
}

TEST(TimerWheel, AgreesWithASortedListOverRandomUse) {
  std::mt19937 random(7);
  TimerWheel wheel(kWheelStart);
  std::vector<Node> nodes(200);
  std::vector<TimePoint> due(nodes.size(), kNever);
  TimePoint now = kWheelStart;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t i = random() % nodes.size();
    switch (random() % 4) {
      case 0:
      case 1:
        due[i] = now + milliseconds(1 + random() % 200'000);
        wheel.set(nodes[i], due[i]);
        break;
      case 2:
        due[i] = kNever;
        wheel.cancel(nodes[i]);
        break;
      default: now += milliseconds(random() % 500);
    }
    wheel.expire(now, [&](TimerNode& node) {
      const auto k = static_cast<std::size_t>(static_cast<Node*>(&node) - nodes.data());
      EXPECT_LE(due[k], now);
      due[k] = kNever;
    });
    for (const TimePoint d : due) ASSERT_GT(d, now - kSlot) << "one was forgotten";
  }
}

}  // namespace
}  // namespace tandem::net
