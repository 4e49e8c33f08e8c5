// What the pure half, a scrape and a status page cost beside 2,000, 20,000 and 200,000 rooms with a parked mac each.
// `./dev bench --only micro` prints how each grows.
#include "tandem/admin/status.hpp"
#include "tandem/core/random.hpp"
#include "tandem/metrics/metrics.hpp"
#include "tandem/net/gate.hpp"
#include "tandem/protocol/admission.hpp"
#include "tandem/relay/relay.hpp"

#include <malloc.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tandem;
using namespace tandem::relay;

constexpr std::uint64_t kVisitors = 1'000'000'000;  // sockets and rooms from here on come and go

class Deaf final : public Observer {
 public:
  void observe(const Observed&) override {}
};

Settings settings(bool resolved) {
  Settings s;
  s.hostname = "h0.example";
  s.resolved = resolved;
  s.attest_required = false;
  s.rendezvous = Duration::zero();
  s.upgrades_per_minute = s.attests_per_minute = s.sockets_per_client = {};
  s.sockets = s.rooms = {};
  return s;
}

RoomName room_number(std::uint64_t n) {
  SeededRandom random(n);
  std::array<std::uint8_t, 32> digest;
  random.fill(digest);
  return RoomName(digest);
}

// A relay in which so many macs wait, with a store that knows no room and answers at once.
class FullBox {
 public:
  explicit FullBox(std::int64_t rooms, bool resolved = false) : relay(settings(resolved), random_, nobody_) {
    feed(event::FloorLoaded{});
    if (resolved) adopt(1, 0);
    for (std::int64_t i = 1; i <= rooms; ++i)
      join(SocketId{static_cast<std::uint64_t>(i)}, static_cast<std::uint64_t>(i));
  }

  void join(SocketId socket, std::uint64_t room) {
    feed(event::SocketOpened{socket, room_number(room), ClientKey{{4, 10, 0, 0, 1}}});
    feed(event::MessageReceived{socket, hello_});
    feed(event::MessageReceived{socket, proof_});
  }
  void leave(SocketId socket) { feed(event::SocketEnded{socket}); }

  // A map in which everything but the last `gone` buckets is ours.
  void adopt(std::uint64_t version, std::uint32_t gone) {
    std::vector<shard::Range> ranges{{0, static_cast<std::uint16_t>(65535 - gone), "h0.example"}};
    if (gone != 0) ranges.push_back({static_cast<std::uint16_t>(65536 - gone), 65535, "h1.example"});
    auto made = shard::ShardMap::make(MapVersion{version}, std::move(ranges));
    feed(event::MapReceived{std::make_shared<shard::ShardMap>(std::get<shard::ShardMap>(std::move(made)))});
  }

  void feed(const Event& event) {
    for (const Effect& effect : relay.handle(event, now)) {
      if (const auto* load = std::get_if<effect::LoadRoom>(&effect)) feed(event::RoomLoaded{load->room, std::nullopt});
    }
  }

  Now now{TimePoint{} + std::chrono::hours(1), WallTime{} + std::chrono::hours(24 * 365 * 56)};

 private:
  SeededRandom random_{1};
  Deaf nobody_;
  std::string hello_ = protocol::hello_message(Role::mac, false), proof_ = protocol::proof_message({});

 public:
  Relay relay;
};

// Filling takes a second: each is kept for whoever measures the same size next.
FullBox& box_of(std::int64_t rooms, bool resolved = false) {
  static std::map<std::pair<std::int64_t, bool>, std::unique_ptr<FullBox>> boxes;
  auto& box = boxes[{rooms, resolved}];
  if (box == nullptr) box = std::make_unique<FullBox>(rooms, resolved);
  return *box;
}

void check_filled(benchmark::State& state, FullBox& box) {
  if (box.relay.snapshot(box.now).rooms.mac_only != static_cast<std::uint64_t>(state.range(0)))
    state.SkipWithError("the macs are not all parked");
}

void gate(benchmark::State& state) {
  FullBox& box = box_of(state.range(0));
  check_filled(state, box);
  const std::string text =
      "GET / HTTP/1.1\r\nHost: h0.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
      "13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nx-relay-room: " +
      room_number(kVisitors).hex() + "\r\n\r\n";
  const auto parsed = net::parse_head(text);
  const auto& head = std::get<net::RequestHead>(parsed);
  for (auto _ : state) benchmark::DoNotOptimize(net::pass_gate(head, ClientKey{{4, 10, 0, 0, 1}}, box.relay, box.now));
}

void admission_and_leaving(benchmark::State& state) {
  FullBox& box = box_of(state.range(0));
  check_filled(state, box);
  std::uint64_t n = kVisitors;
  for (auto _ : state) {
    ++n;
    box.join({n}, n);
    box.leave({n});
  }
  if (box.relay.snapshot(box.now).sockets.admitted != static_cast<std::uint64_t>(state.range(0)))
    state.SkipWithError("not everybody left");
}

void adoption_that_moves_1000_rooms(benchmark::State& state) {
  FullBox& box = box_of(state.range(0), true);
  check_filled(state, box);
  static std::map<std::int64_t, std::uint64_t> versions;
  std::uint64_t& version = versions.emplace(state.range(0), 1).first->second;
  const auto gone = static_cast<std::uint32_t>(65536 * 1000 / state.range(0));
  for (auto _ : state) {
    box.adopt(++version, gone);
    box.adopt(++version, 0);  // and takes them back
  }
}

void snapshot(benchmark::State& state) {
  FullBox& box = box_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(box.relay.snapshot(box.now));
}

void metrics_scrape(benchmark::State& state) {
  FullBox& box = box_of(state.range(0));
  const metrics::Metrics metrics([&] {
    metrics::Sample sample;
    sample.relay = box.relay.snapshot(box.now);
    return sample;
  });
  for (auto _ : state) benchmark::DoNotOptimize(metrics.scrape());
}

void status_page(benchmark::State& state) {
  FullBox& box = box_of(state.range(0));
  for (auto _ : state) {
    admin::Status status;
    status.hostname = "h0.example";
    status.relay = box.relay.snapshot(box.now);
    status.last_hour.resize(60);
    benchmark::DoNotOptimize(admin::status_json(status));
  }
}

// Not a time: bytes of heap that one room with its parked mac takes in the pure half.
void heap_bytes_of_a_room(benchmark::State& state) {
  for (auto _ : state) {
    const auto before = mallinfo2();
    const FullBox box(state.range(0));
    const auto after = mallinfo2();
    state.counters["bytes"] = static_cast<double>(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) /
                              static_cast<double>(state.range(0));
  }
}

#define BESIDE_ROOMS(name) BENCHMARK(name)->Arg(2'000)->Arg(20'000)->Arg(200'000)->Unit(benchmark::kMicrosecond)
BESIDE_ROOMS(gate);
BESIDE_ROOMS(admission_and_leaving);
BESIDE_ROOMS(adoption_that_moves_1000_rooms);
BESIDE_ROOMS(snapshot);
BESIDE_ROOMS(metrics_scrape);
BESIDE_ROOMS(status_page);
BESIDE_ROOMS(heap_bytes_of_a_room)->Iterations(1);

}  // namespace
