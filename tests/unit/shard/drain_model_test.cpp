// The drain queue against a model that recomputes everything from scratch: random maps, times, joins and leaves.
#include "tandem/core/random.hpp"
#include "tandem/shard/drain_queue.hpp"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::shard {
namespace {

using namespace std::chrono_literals;

class Model {
 public:
  Model(Duration delay, Duration interval) : delay_(delay), interval_(interval) {}

  void relinquish(Bucket b, const std::vector<RoomSerial>& rooms, bool has_owner, TimePoint now) {
    buckets_[b] = {has_owner ? now + delay_ : kNever, false, {rooms.begin(), rooms.end()}};
  }
  void owner_changed(Bucket b, bool has_owner, TimePoint now) {
    if (!buckets_.contains(b)) return;
    buckets_[b].deadline = has_owner ? now + delay_ : kNever;
    buckets_[b].reported = false;
  }
  void reacquire(Bucket b) { buckets_.erase(b); }
  void room_left(Bucket b, RoomSerial r) {
    const auto it = buckets_.find(b);
    if (it != buckets_.end() && it->second.rooms.erase(r) > 0) drop_if_done(it);
  }
  std::optional<std::pair<Bucket, RoomSerial>> evict(TimePoint now) {
    const auto best = first_room();
    if (!best || slot(best->first) > now) return {};
    last_ = slot(best->first);  // the model is never late: it is asked at every deadline
    const auto [deadline, room, bucket] = std::tuple(best->first, best->second.first, best->second.second);
    const auto it = buckets_.find(bucket);
    it->second.rooms.erase(room);
    drop_if_done(it);
    return std::pair(bucket, room);
  }
  std::set<Bucket> ended_waits(TimePoint now) {
    std::set<Bucket> out;
    for (auto it = buckets_.begin(); it != buckets_.end();) {
      if (it->second.reported || it->second.deadline > now) {
        ++it;
        continue;
      }
      out.insert(it->first);
      it->second.reported = true;
      it = it->second.rooms.empty() ? buckets_.erase(it) : std::next(it);
    }
    return out;
  }
  TimePoint next_deadline() const {
    TimePoint next = kNever;
    if (const auto best = first_room()) next = slot(best->first);
    for (const auto& [b, s] : buckets_)
      if (!s.reported) next = std::min(next, s.deadline);
    return next;
  }
  std::uint64_t rooms_left() const {
    std::uint64_t n = 0;
    for (const auto& [b, s] : buckets_) n += s.rooms.size();
    return n;
  }
  std::uint32_t buckets_with_rooms() const {
    std::uint32_t n = 0;
    for (const auto& [b, s] : buckets_) n += !s.rooms.empty();
    return n;
  }
  bool is_draining(Bucket b) const { return buckets_.contains(b); }

 private:
  struct State {
    TimePoint deadline;
    bool reported;
    std::set<RoomSerial> rooms;
  };
  void drop_if_done(std::map<Bucket, State>::iterator it) {
    if (it->second.rooms.empty() && it->second.reported) buckets_.erase(it);
  }
  std::optional<std::pair<TimePoint, std::pair<RoomSerial, Bucket>>> first_room() const {
    std::optional<std::pair<TimePoint, std::pair<RoomSerial, Bucket>>> best;
    for (const auto& [b, s] : buckets_)
      if (s.deadline != kNever && !s.rooms.empty()) {
        const std::pair candidate(s.deadline, std::pair(*s.rooms.begin(), b));
        if (!best || candidate < *best) best = candidate;
      }
    return best;
  }
  TimePoint slot(TimePoint deadline) const { return last_ ? std::max(deadline, *last_ + interval_) : deadline; }

  Duration delay_, interval_;
  std::map<Bucket, State> buckets_;
  std::optional<TimePoint> last_;
};

void drain_both(DrainQueue& queue, Model& model, TimePoint now) {
  while (true) {
    const auto got = queue.next_eviction(now);
    const auto wanted = model.evict(now);
    ASSERT_EQ(got.has_value(), wanted.has_value());
    if (!got) break;
    ASSERT_EQ(got->bucket, wanted->first);
    ASSERT_EQ(got->room, wanted->second);
  }
  std::set<Bucket> ended;
  while (const auto b = queue.next_ended_wait(now)) ASSERT_TRUE(ended.insert(*b).second) << "reported twice";
  ASSERT_EQ(ended, model.ended_waits(now));
}

void one_sequence(std::uint64_t seed) {
  SeededRandom random(seed);
  const Duration delay = milliseconds(random.below(3000));
  const double rate = std::vector<double>{0.5, 1, 4, 10, 250}[random.below(5)];
  DrainQueue queue(delay, rate);
  Model model(delay, Duration{static_cast<std::int64_t>(1e9 / rate)});
  TimePoint now{1000s};
  std::map<Bucket, std::vector<RoomSerial>> alive;  // rooms ever handed in, by bucket
  std::uint64_t serial = 0;
  for (int step = 0; step < 40; ++step) {
    const Bucket b{static_cast<std::uint16_t>(random.below(6))};
    switch (random.below(5)) {
      case 0: {
        if (model.is_draining(b)) break;
        std::vector<RoomSerial> rooms;
        for (std::uint64_t n = random.below(4); n > 0; --n) rooms.push_back({++serial});
        const bool owned = random.below(4) > 0;
        alive[b] = rooms;
        queue.relinquish(b, rooms, owned, now);
        model.relinquish(b, rooms, owned, now);
        break;
      }
      case 1: {
        const bool owned = random.below(3) > 0;
        queue.owner_changed(b, owned, now);
        model.owner_changed(b, owned, now);
        break;
      }
      case 2:
        if (random.below(3) > 0) break;
        queue.reacquire(b);
        model.reacquire(b);
        break;
      case 3:
        if (const auto& rooms = alive[b]; !rooms.empty()) {
          const RoomSerial room = rooms[random.below(rooms.size())];
          queue.room_left(b, room);
          model.room_left(b, room);
        }
        break;
      default: {
        const TimePoint until = now + milliseconds(random.below(2000));
        while (queue.next_deadline() <= until) {
          now = std::max(now, queue.next_deadline());
          drain_both(queue, model, now);
          if (testing::Test::HasFatalFailure()) return;
        }
        now = until;
      }
    }
    ASSERT_TRUE(queue.is_consistent());
    ASSERT_EQ(queue.next_deadline(), model.next_deadline());
    ASSERT_EQ(queue.rooms_left(), model.rooms_left());
    ASSERT_EQ(queue.buckets_with_rooms(), model.buckets_with_rooms());
    for (std::uint16_t i = 0; i < 6; ++i) ASSERT_EQ(queue.is_draining({i}), model.is_draining({i}));
  }
}

TEST(DrainQueue, MatchesItsModelOverRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    one_sequence(seed);
    if (HasFatalFailure()) return;
  }
}

TEST(DrainQueue, ForetellsItsEndExactly) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SeededRandom random(seed);
    DrainQueue queue(seconds(20), 10);
    TimePoint now{1000s};
    std::uint64_t serial = 0;
    for (std::uint16_t b = 0; b < 5; ++b) {
      std::vector<RoomSerial> rooms;
      for (std::uint64_t n = random.below(30); n > 0; --n) rooms.push_back({++serial});
      queue.relinquish({b}, rooms, true, now);
      now += milliseconds(random.below(1500));
    }
    const auto foretold = queue.expected_end(now);
    TimePoint last{};
    while (queue.rooms_left() > 0) {
      now = std::max(now, queue.next_deadline());
      while (queue.next_eviction(now)) last = now;
      while (queue.next_ended_wait(now)) {
      }
    }
    if (serial > 0) {
      EXPECT_EQ(foretold, last) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tandem::shard
