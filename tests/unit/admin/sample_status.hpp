// A status of a host in the middle of a drain, for tests.
#pragma once

#include "tandem/admin/status.hpp"

namespace tandem::test {

inline std::shared_ptr<const shard::ShardMap> sample_map(MapVersion version, std::vector<shard::Range> ranges) {
  auto made = shard::ShardMap::make(version, std::move(ranges));
  return std::make_shared<const shard::ShardMap>(std::get<shard::ShardMap>(std::move(made)));
}

inline admin::Status sample_status() {
  admin::Status s;
  s.hostname = "relay1.test";
  s.uptime = milliseconds(3100);
  s.now = WallTime{std::chrono::seconds(1'700'000'000)};
  s.relay.resolved = s.relay.has_map = true;
  s.relay.version = MapVersion{8};
  s.relay.floor = MapVersion{8};
  s.relay.owned_buckets = 32768;
  s.relay.owned_ranges = {{Bucket{0}, Bucket{32767}}};
  s.relay.rooms.spliced = 12;
  s.relay.rooms.mac_only = 5;
  s.relay.sockets.admitted = 29;
  s.relay.draining.buckets = 2;
  s.relay.draining.rooms = 2;
  s.relay.draining.next_eviction = milliseconds(100);
  s.relay.draining.expected_end = milliseconds(300);
  s.drain_began_with = 8;
  s.map_age = milliseconds(400);
  s.map = sample_map(MapVersion{8},
                     {{0, 32767, "relay1.test"}, {32768, 65000, "relay2.test"}, {65001, 65535, "nobody.invalid"}});
  s.bytes_per_second = 1234567;
  for (int i = 0; i < 60; ++i) s.last_hour.push_back(1e6 + 1e5 * (i % 7));
  s.certificate_expiry = WallTime{std::chrono::seconds(1'700'000'000 + 86400 * 40)};
  return s;
}

}  // namespace tandem::test
