// Time, chance and faults; what a run is made of and how it ends.
#include "sim/sim.hpp"

#include <array>
#include <cstdio>

namespace tandem::sim {
namespace {

constexpr std::array<std::string_view, kPlantCount> kNames{
    "none",        "keep_displaced", "cross_splice", "admit_refused", "hide_map",    "mute_close",
    "leak_socket", "lose_loads",     "drain_early",  "drain_fast",    "weak_random", "forget_stored"};
constexpr int kHosts = 3, kPairings = 6;
// Rooms live in these buckets; maps move them one by one and leave the rest of the ring alone.
constexpr std::uint16_t kFirstHot = 1000, kHotBuckets = 6;

}  // namespace

std::string_view name(Plant p) { return kNames[static_cast<std::size_t>(p)]; }

Sim::Sim(std::uint64_t seed, Plant plant, bool trace) : seed_(seed), plant_(plant), trace_(trace), random_(seed) {
  attested_ = chance(0.4);
  settings_.resolved = true;
  settings_.attest_required = attested_;
  settings_.attest_configured = true;
  settings_.app_id = "TEAMID.example";
  settings_.rendezvous = chance(0.7) ? Duration(seconds(2)) : Duration::zero();
  settings_.drain_delay = seconds(10);
  settings_.eviction_rate = 1;
  for (int i = 0; i < kHosts; ++i) {
    auto h = std::make_unique<Host>();
    h->index = i;
    h->name = "relay" + std::to_string(i) + ".example";
    h->sim = this;
    hosts_.push_back(std::move(h));
  }
  for (int i = 0; i < kPairings; ++i) {
    Pairing p;
    std::array<std::uint8_t, 32> digest{};
    digest[0] = static_cast<std::uint8_t>(i + 1);
    const auto bucket = static_cast<std::uint16_t>(kFirstHot + random_.below(kHotBuckets));
    digest[30] = static_cast<std::uint8_t>(bucket >> 8);
    digest[31] = static_cast<std::uint8_t>(bucket);
    p.room = RoomName(digest);
    random_.fill(p.seed);
    pairings_.push_back(p);
    for (const Role role : {Role::mac, Role::phone}) {
      Endpoint e;
      e.pairing = i;
      e.role = role;
      e.client.bytes = {4, 10, static_cast<std::uint8_t>(i), role == Role::mac ? std::uint8_t{1} : std::uint8_t{2}};
      endpoints_.push_back(e);
    }
  }
  publish(true);
  for (auto& h : hosts_) boot(*h);
  for (int i = 0; i < static_cast<int>(endpoints_.size()); ++i) after(some(seconds(5)), [this, i] { connect(i); });
}

// ---------------------------------------------------------------- time and chance

void Sim::at(TimePoint when, Action action) {
  queue_.push({when, ++order_, std::make_shared<Action>(std::move(action))});
}

bool Sim::step() {
  if (queue_.empty()) return false;
  const Item item = queue_.top();
  queue_.pop();
  now_ = std::max(now_, item.when);
  (*item.action)();
  ++report_.events;
  return true;
}

Duration Sim::some(Duration longest) {
  return Duration(static_cast<Duration::rep>(random_.unit() * static_cast<double>(longest.count())));
}

Now Sim::now_of(const Host& h) const {
  const std::chrono::sys_time<Duration> wall{now_.time_since_epoch() + std::chrono::hours(24 * 20000) + h.wall_offset};
  return {now_, std::chrono::floor<seconds>(wall)};
}

// ---------------------------------------------------------------- maps

// settle: every bucket has an owner.
void Sim::publish(bool settle) {
  std::vector<shard::Range> ranges;
  std::vector<std::string> owner;
  for (int i = 0; i < kHotBuckets; ++i) {
    const bool nobody = !settle && chance(0.1);
    const bool same = !published_.empty() && chance(0.6);
    std::string host = nobody ? "nobody.invalid" : hosts_[random_.below(kHosts)]->name;
    if (same) host = published_.back()->host_of(Bucket{static_cast<std::uint16_t>(kFirstHot + i)});
    if (settle && host.ends_with(".invalid")) host = hosts_[0]->name;
    ranges.push_back({static_cast<std::uint16_t>(kFirstHot + i), static_cast<std::uint16_t>(kFirstHot + i), host});
  }
  ranges.push_back({0, kFirstHot - 1, hosts_[0]->name});
  ranges.push_back({kFirstHot + kHotBuckets, 65535, hosts_[1]->name});
  const MapVersion version{published_.size() + 1};
  auto made = shard::ShardMap::make(version, std::move(ranges));
  published_.push_back(std::make_shared<shard::ShardMap>(std::get<shard::ShardMap>(std::move(made))));
  ++report_.maps;
}

// What a fetch finds: an edge of the CDN may lag by a few versions.
std::shared_ptr<const shard::ShardMap> Sim::edge_map() {
  std::size_t lag = 0;
  while (!quiet_ && lag + 1 < published_.size() && chance(0.25)) ++lag;
  return published_[published_.size() - 1 - lag];
}

// ---------------------------------------------------------------- faults

void Sim::fault() {
  if (quiet_) return;
  after(some(seconds(4)), [this] { fault(); });
  Host& h = *hosts_[random_.below(hosts_.size())];
  switch (random_.below(12)) {
    case 0:
      if (h.up && chance(0.3)) {
        kill(h);
        after(some(seconds(20)), [this, &h] { boot(h); });
      }
      break;
    case 1:
    case 2: publish(false); break;
    case 3: h.wall_offset += some(std::chrono::hours(24 * 400)) - std::chrono::hours(24 * 200); break;
    case 4: h.store_works = !h.store_works && chance(0.8); break;
    case 5: h.store_works = true; break;
    case 6:
    case 7: {
      Endpoint& e = endpoints_[random_.below(endpoints_.size())];
      if (e.connection) hang_up(e.connection);
      break;
    }
    case 8: {
      Endpoint& e = endpoints_[random_.below(endpoints_.size())];
      if (e.connection) e.connection->deaf = true;
      break;
    }
    default: stranger(); break;
  }
}

// ---------------------------------------------------------------- the run

Report Sim::run(std::uint64_t events) {
  try {
    after(some(seconds(3)), [this] { fault(); });
    while (report_.events < events && step()) {
    }
    settle_and_check();
  } catch (const Broken& b) {
    report_.broken = b.what;
  }
  report_.virtual_time = now_ - TimePoint(std::chrono::hours(1));
  return report_;
}

// Once faults stop everything converges; once everybody has left nothing remains.
void Sim::settle_and_check() {
  quiet_ = true;
  for (auto& h : hosts_) {
    h->store_works = true;
    if (!h->up) boot(*h);
  }
  for (Endpoint& e : endpoints_) {
    if (e.connection && e.connection->deaf) hang_up(e.connection);
  }
  publish(true);
  const TimePoint converged_by = now_ + std::chrono::minutes(6);
  while (!queue_.empty() && queue_.top().when <= converged_by) step();
  now_ = std::max(now_, converged_by);
  for (const Endpoint& e : endpoints_) {
    const Pairing& p = pairings_[static_cast<std::size_t>(e.pairing)];
    const std::string who =
        "converges: the " + std::string(to_string(e.role)) + " of pairing " + std::to_string(e.pairing);
    expect(e.admitted && e.connection && e.connection->peer.value != 0, who + " has no peer");
    const std::string& owner = published_.back()->host_of(p.room.bucket());
    expect(hosts_[static_cast<std::size_t>(e.connection->host)]->name == owner, who + " is not with the owner");
  }
  leaving_ = true;
  for (Endpoint& e : endpoints_) {
    if (e.connection) hang_up(e.connection);
  }
  const TimePoint gone_by = now_ + std::chrono::hours(25);  // the quota's window is the longest memory
  while (!queue_.empty() && queue_.top().when <= gone_by) step();
  now_ = std::max(now_, gone_by);
  for (auto& h : hosts_) {
    tick(*h);
    const relay::Snapshot s = h->relay->snapshot(now_of(*h));
    expect(s.sockets.pending + s.sockets.admitted == 0, "memory returns: sockets are left at " + h->name);
    expect(s.draining.rooms == 0, "memory returns: rooms drain at " + h->name);
    expect(s.rooms_in_memory == 0,
           "memory returns: " + std::to_string(s.rooms_in_memory) + " rooms are left at " + h->name);
  }
}

Report run(std::uint64_t seed, std::uint64_t events, Plant plant, bool trace) {
  return Sim(seed, plant, trace).run(events);
}

}  // namespace tandem::sim
