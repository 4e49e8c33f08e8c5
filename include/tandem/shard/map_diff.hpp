// What lies between two maps: which buckets move, whom it concerns, how long it takes (2b-map-tool, "JSON" and
// "Forecast"). Pure.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/shard/map.hpp"
#include "tandem/shard/map_edit.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem::shard {

inline constexpr std::string_view kNobody = "nobody.invalid";
inline constexpr std::uint32_t kLargeMove = kBucketCount / 4;  // above it, smaller parts are suggested

// A maximal run of buckets with one old and one new owner.
struct Move {
  std::uint16_t low = 0, high = 0;
  std::string from, to;
  friend bool operator==(const Move&, const Move&) = default;
};
[[nodiscard]] std::vector<Move> moves_between(const ShardMap& from, const ShardMap& to);  // ascending
[[nodiscard]] std::uint32_t moved_buckets(const std::vector<Move>& moves);

// The map's ranges with every moved bucket given to its `to`, whoever holds it now.
[[nodiscard]] Ranges laid_over(const ShardMap& map, const std::vector<Move>& moves);
// Phase 1 of a two-phase publish: the same moves, ending at nobody.
[[nodiscard]] std::vector<Move> to_nobody(std::vector<Move> moves);

struct HostShare {
  std::uint32_t buckets = 0, arcs = 0;  // arcs on the ring: one over the seam counts once
};
[[nodiscard]] std::map<std::string, HostShare> shares(const ShardMap& map);  // names under .invalid included
[[nodiscard]] bool is_nobody(std::string_view host);                         // under .invalid
[[nodiscard]] std::uint32_t unowned_buckets(const ShardMap& map);

struct HostChange {
  std::uint32_t before = 0, after = 0;
};
[[nodiscard]] std::map<std::string, HostChange> host_changes(const ShardMap& from, const ShardMap& to);

// rooms: what the hosts that answered reported. Names under .invalid lose nothing.
struct Forecast {
  std::optional<std::uint64_t> rooms_affected;  // nothing unless every losing host answered
  double convergence_seconds = 0;
};
[[nodiscard]] Forecast forecast(const ShardMap& from, const std::vector<Move>& moves,
                                const std::map<std::string, std::uint64_t>& rooms, Duration drain_delay,
                                double eviction_rate);
[[nodiscard]] std::vector<std::string> losing_hosts(const std::vector<Move>& moves);  // each once, ascending

}  // namespace tandem::shard
