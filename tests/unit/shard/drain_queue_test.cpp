#include "tandem/shard/drain_queue.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace tandem::shard {
namespace {

using namespace std::chrono_literals;
using Rooms = std::vector<RoomSerial>;

constexpr TimePoint kStart{1000s};

std::vector<std::pair<TimePoint, std::uint64_t>> run(DrainQueue& queue, TimePoint from, TimePoint to,
                                                     Duration step = 1ms) {
  std::vector<std::pair<TimePoint, std::uint64_t>> out;
  for (TimePoint t = from; t <= to; t += step) {
    while (const auto e = queue.next_eviction(t)) out.emplace_back(t, e->room.value);
    while (queue.next_ended_wait(t)) {
    }
    EXPECT_TRUE(queue.is_consistent());
  }
  return out;
}

TEST(DrainQueue, EvictsARoomAtItsDeadlineNotBefore) {
  DrainQueue q(20s, 10);
  q.relinquish({7}, Rooms{{1}}, true, kStart);
  EXPECT_EQ(q.next_deadline(), kStart + 20s);
  EXPECT_FALSE(q.next_eviction(kStart + 20s - 1ns));
  const auto e = q.next_eviction(kStart + 20s);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->bucket, Bucket{7});
  EXPECT_EQ(e->room, RoomSerial{1});
  EXPECT_EQ(q.rooms_left(), 0u);
}

TEST(DrainQueue, SpacesEvictionsEvenlyFromTheFirst) {
  DrainQueue q(1s, 10);
  q.relinquish({1}, Rooms{{5}, {3}, {4}}, true, kStart);
  const auto out = run(q, kStart, kStart + 3s);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0], std::pair(kStart + 1s, std::uint64_t{3}));
  EXPECT_EQ(out[1], std::pair(kStart + 1100ms, std::uint64_t{4}));
  EXPECT_EQ(out[2], std::pair(kStart + 1200ms, std::uint64_t{5}));
  EXPECT_EQ(q.next_deadline(), kNever);
  EXPECT_FALSE(q.is_draining({1}));
}

TEST(DrainQueue, TakesFractionalRates) {
  DrainQueue q(1s, 0.5);
  q.relinquish({1}, Rooms{{1}, {2}, {3}}, true, kStart);
  const auto out = run(q, kStart, kStart + 10s, 10ms);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[1].first - out[0].first, 2s);
  EXPECT_EQ(out[2].first - out[1].first, 2s);
}

TEST(DrainQueue, TakesTheEarliestDeadlineFirstThenTheOldestRoomOverAllBuckets) {
  DrainQueue q(1s, 1000);
  q.relinquish({1}, Rooms{{50}, {10}}, true, kStart + 1ms);
  q.relinquish({2}, Rooms{{60}, {20}}, true, kStart);
  q.relinquish({3}, Rooms{{5}, {55}}, true, kStart + 1ms);
  std::vector<std::uint64_t> order;
  for (const auto& [t, room] : run(q, kStart, kStart + 2s)) order.push_back(room);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{20, 60, 5, 10, 50, 55}));
}

TEST(DrainQueue, MakesNoBurstAfterIdling) {
  DrainQueue q(1s, 10);
  q.relinquish({1}, Rooms{{1}}, true, kStart);
  (void)run(q, kStart, kStart + 2s);
  q.relinquish({2}, Rooms{{2}, {3}}, true, kStart + 60s);
  const auto out = run(q, kStart + 60s, kStart + 63s);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].first - out[0].first, 100ms);
}

TEST(DrainQueue, NeverCatchesUpInABurstWhenTheLoopWasLate) {
  DrainQueue q(0s, 10);
  Rooms rooms;
  for (std::uint64_t i = 1; i <= 40; ++i) rooms.push_back({i});
  q.relinquish({1}, rooms, true, kStart);
  std::vector<TimePoint> times;
  TimePoint t = kStart;
  for (int i = 0; i < 4000; ++i, t += (i % 37 == 0 ? 730ms : 3ms))
    while (q.next_eviction(t)) times.push_back(t);
  ASSERT_EQ(times.size(), 40u);
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::size_t within = 0;
    while (i + within < times.size() && times[i + within] - times[i] < 1s) ++within;
    EXPECT_LE(within, 11u);
    if (i > 0) {
      EXPECT_GE(times[i] - times[i - 1], 75ms);
    }
  }
}

TEST(DrainQueue, KeepsItsRateThoughEveryWakeUpIsALittleLate) {
  DrainQueue q(0s, 10);
  Rooms rooms;
  for (std::uint64_t i = 1; i <= 101; ++i) rooms.push_back({i});
  q.relinquish({1}, rooms, true, kStart);
  (void)q.next_ended_wait(kStart);
  TimePoint last = kStart;
  while (q.rooms_left() > 0) {
    last = std::max(last, q.next_deadline()) + 2ms;
    ASSERT_TRUE(q.next_eviction(last));
  }
  EXPECT_LE(last - kStart, 10s + 5ms);
}

TEST(DrainQueue, WaitsAgainFromALaterChangeOfOwnerForWhatIsLeft) {
  DrainQueue q(2s, 1);
  q.relinquish({1}, Rooms{{1}, {2}, {3}}, true, kStart);
  EXPECT_EQ(run(q, kStart, kStart + 2500ms).size(), 1u);
  q.owner_changed({1}, true, kStart + 2500ms);
  const auto out = run(q, kStart + 2500ms, kStart + 10s);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].first, kStart + 4500ms);
}

TEST(DrainQueue, KeepsRoomsWhileNobodyOwnsTheirBucket) {
  DrainQueue q(1s, 10);
  q.relinquish({1}, Rooms{{1}}, false, kStart);
  EXPECT_EQ(q.next_deadline(), kNever);
  EXPECT_TRUE(run(q, kStart, kStart + 100s, 1s).empty());
  EXPECT_TRUE(q.is_draining({1}));
  EXPECT_EQ(q.buckets_with_rooms(), 1u);
  EXPECT_FALSE(q.expected_end(kStart));
  q.owner_changed({1}, true, kStart + 100s);
  EXPECT_EQ(q.next_deadline(), kStart + 101s);
  EXPECT_EQ(q.expected_end(kStart + 100s), kStart + 101s);
}

TEST(DrainQueue, IgnoresAChangeOfOwnerOfABucketThatDoesNotDrain) {
  DrainQueue q(1s, 10);
  q.owner_changed({9}, true, kStart);
  EXPECT_FALSE(q.is_draining({9}));
  EXPECT_EQ(q.next_deadline(), kNever);
}

TEST(DrainQueue, CancelsTheDrainOfAReacquiredBucket) {
  DrainQueue q(1s, 10);
  q.relinquish({1}, Rooms{{1}, {2}}, true, kStart);
  q.relinquish({2}, Rooms{{3}}, true, kStart);
  q.reacquire({1});
  EXPECT_EQ(q.rooms_left(), 1u);
  const auto out = run(q, kStart, kStart + 5s);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].second, 3u);
}

TEST(DrainQueue, ForgetsARoomThatLeftByItself) {
  DrainQueue q(1s, 10);
  q.relinquish({1}, Rooms{{1}, {2}}, true, kStart);
  q.room_left({1}, {1});
  q.room_left({1}, {99});
  q.room_left({4}, {2});
  const auto out = run(q, kStart, kStart + 5s);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0], std::pair(kStart + 1s, std::uint64_t{2}));
}

TEST(DrainQueue, ReportsTheEndOfAWaitOnceAndOnlyThen) {
  DrainQueue q(1s, 10);
  q.relinquish({1}, {}, true, kStart);
  q.relinquish({2}, Rooms{{5}, {6}}, true, kStart);
  EXPECT_EQ(q.buckets_with_rooms(), 1u);
  EXPECT_FALSE(q.next_ended_wait(kStart + 999ms));
  EXPECT_EQ(q.next_ended_wait(kStart + 1s), Bucket{1});
  EXPECT_EQ(q.next_ended_wait(kStart + 1s), Bucket{2});
  EXPECT_FALSE(q.next_ended_wait(kStart + 1s));
  EXPECT_FALSE(q.is_draining({1}));
  EXPECT_TRUE(q.is_draining({2}));
  EXPECT_TRUE(q.next_eviction(kStart + 1s));
  EXPECT_TRUE(q.next_eviction(kStart + 1100ms));
  EXPECT_FALSE(q.is_draining({2}));
  EXPECT_TRUE(q.is_consistent());
}

TEST(DrainQueue, AppliesANewRateFromTheLastEvictionOn) {
  DrainQueue q(1s, 1);
  q.relinquish({1}, Rooms{{1}, {2}, {3}}, true, kStart);
  EXPECT_TRUE(q.next_eviction(kStart + 1s));
  EXPECT_EQ(q.next_deadline(), kStart + 1s);  // the end of the wait itself
  EXPECT_TRUE(q.next_ended_wait(kStart + 1s));
  EXPECT_EQ(q.next_deadline(), kStart + 2s);
  q.set_rate(10);
  EXPECT_EQ(q.next_deadline(), kStart + 1100ms);
}

TEST(DrainQueue, AppliesANewDelayToWaitsThatStartLater) {
  DrainQueue q(1s, 10);
  q.relinquish({1}, Rooms{{1}}, true, kStart);
  q.set_delay(5s);
  EXPECT_EQ(q.next_deadline(), kStart + 1s);
  q.owner_changed({1}, true, kStart + 500ms);
  EXPECT_EQ(q.next_deadline(), kStart + 5500ms);
}

TEST(DrainQueue, ForetellsItsEnd) {
  DrainQueue q(20s, 10);
  Rooms rooms;
  for (std::uint64_t i = 1; i <= 100; ++i) rooms.push_back({i});
  q.relinquish({1}, rooms, true, kStart);
  q.relinquish({2}, Rooms{{200}}, true, kStart + 60s);
  EXPECT_EQ(q.expected_end(kStart), kStart + 80s);
  q.reacquire({2});
  const auto end = q.expected_end(kStart);
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, kStart + 20s + 9900ms);
  EXPECT_EQ(run(q, kStart, kStart + 60s).back().first, *end);
  EXPECT_FALSE(q.expected_end(kStart + 60s));
}

TEST(DrainQueue, SurvivesRatesAtTheEndsOfTheScale) {
  DrainQueue slow(1s, 1e-300);
  slow.relinquish({1}, Rooms{{1}, {2}, {3}}, true, kStart);
  EXPECT_TRUE(slow.next_eviction(kStart + 1s));
  EXPECT_FALSE(slow.next_eviction(kStart + std::chrono::hours(24 * 365)));
  EXPECT_TRUE(slow.expected_end(kStart + 2s));
  DrainQueue fast(1s, 1e12);
  fast.relinquish({1}, Rooms{{1}, {2}}, true, kStart);
  EXPECT_TRUE(fast.next_eviction(kStart + 1s));
  EXPECT_TRUE(fast.next_eviction(kStart + 1s + 1ns));
}

}  // namespace
}  // namespace tandem::shard
