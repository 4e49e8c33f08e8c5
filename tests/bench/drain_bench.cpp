// What an adoption and a tick cost at the full size: 65,536 ranges, 100,000 rooms, given to the pure half as values.
#include "tandem/core/random.hpp"
#include "tandem/shard/drain_queue.hpp"
#include "tandem/shard/ownership.hpp"

#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tandem;
using namespace tandem::shard;

constexpr std::size_t kRooms = 100'000;
constexpr TimePoint kStart{seconds(1000)};

std::shared_ptr<const ShardMap> finest_map(std::uint64_t version, unsigned shift) {
  std::vector<Range> ranges;
  for (std::uint32_t b = 0; b < kBucketCount; ++b) {
    const auto bucket = static_cast<std::uint16_t>(b);
    ranges.push_back({bucket, bucket, "h" + std::to_string((b + shift) % 3) + ".example"});
  }
  return std::make_shared<const ShardMap>(std::get<ShardMap>(ShardMap::make({version}, std::move(ranges))));
}

std::vector<std::vector<RoomSerial>> rooms_by_bucket() {
  SeededRandom random(1);
  std::vector<std::vector<RoomSerial>> out(kBucketCount);
  for (std::uint64_t i = 1; i <= kRooms; ++i) out[random.below(kBucketCount)].push_back({i});
  return out;
}

void fill(DrainQueue& queue, const std::vector<std::vector<RoomSerial>>& rooms) {
  for (std::uint32_t b = 0; b < kBucketCount; ++b)
    queue.relinquish({static_cast<std::uint16_t>(b)}, rooms[b], true, kStart);
}

void adopt_a_map_of_65536_ranges(benchmark::State& state) {
  const auto one = finest_map(1, 0), two = finest_map(2, 1);
  for (auto _ : state) {
    Ownership ownership("h0.example", true);
    OwnershipDiff diff;
    benchmark::DoNotOptimize(ownership.adopt(one, diff));
    benchmark::DoNotOptimize(ownership.adopt(two, diff));
  }
}
BENCHMARK(adopt_a_map_of_65536_ranges)->Unit(benchmark::kMillisecond);

void relinquish_the_ring_with_100000_rooms(benchmark::State& state) {
  const auto rooms = rooms_by_bucket();
  for (auto _ : state) {
    DrainQueue queue(seconds(20), 10);
    fill(queue, rooms);
    benchmark::DoNotOptimize(queue.rooms_left());
  }
}
BENCHMARK(relinquish_the_ring_with_100000_rooms)->Unit(benchmark::kMillisecond);

void evict_one_of_100000_rooms(benchmark::State& state) {
  const auto rooms = rooms_by_bucket();
  auto queue = std::make_unique<DrainQueue>(seconds(0), 1000.0);
  fill(*queue, rooms);
  TimePoint now = kStart;
  for (auto _ : state) {
    if (queue->rooms_left() == 0) {
      state.PauseTiming();
      queue = std::make_unique<DrainQueue>(seconds(0), 1000.0);
      fill(*queue, rooms);
      state.ResumeTiming();
    }
    now += milliseconds(1);
    benchmark::DoNotOptimize(queue->next_eviction(now));
  }
}
BENCHMARK(evict_one_of_100000_rooms);

void an_idle_tick_beside_100000_waiting_rooms(benchmark::State& state) {
  DrainQueue queue(seconds(20), 10);
  fill(queue, rooms_by_bucket());
  for (auto _ : state) {
    benchmark::DoNotOptimize(queue.next_eviction(kStart));
    benchmark::DoNotOptimize(queue.next_deadline());
  }
}
BENCHMARK(an_idle_tick_beside_100000_waiting_rooms);

void a_room_leaves_by_itself(benchmark::State& state) {
  const auto rooms = rooms_by_bucket();
  auto queue = std::make_unique<DrainQueue>(seconds(20), 10);
  fill(*queue, rooms);
  std::uint32_t b = 0;
  std::size_t i = 0;
  for (auto _ : state) {
    while (i >= rooms[b].size()) {
      i = 0;
      if (++b == kBucketCount) {
        state.PauseTiming();
        queue = std::make_unique<DrainQueue>(seconds(20), 10);
        fill(*queue, rooms);
        state.ResumeTiming();
        b = 0;
      }
    }
    queue->room_left({static_cast<std::uint16_t>(b)}, rooms[b][i++]);
  }
}
BENCHMARK(a_room_leaves_by_itself);

}  // namespace
