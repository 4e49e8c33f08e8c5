// Any bytes are a valid map or a short printable refusal; a valid one writes what reads the same again, and takes every
// edit to another partition.
#include "tandem/shard/map_diff.hpp"
#include "tandem/shard/map_edit.hpp"

#include <cstdlib>

using namespace tandem;
using namespace tandem::shard;

namespace {

void check(bool fine) {
  if (!fine) std::abort();
}

void check_edit(const ShardMap& map, const Edited& edited) {
  const auto* ranges = std::get_if<Ranges>(&edited);
  if (!ranges) return;
  check(is_merged(*ranges));
  const auto made = ShardMap::make({map.version().value + 1}, *ranges);
  const auto* after = std::get_if<ShardMap>(&made);
  check(after || map.version().value == (std::uint64_t{1} << 53) - 1);
  if (after) check(laid_over(map, moves_between(map, *after)) == *ranges);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = ShardMap::parse({reinterpret_cast<const char*>(data), size});
  if (const auto* fault = std::get_if<MapFault>(&parsed)) {
    check(!fault->message.empty() && fault->message.size() < 1000);
    for (const char c : fault->message) check(c >= 0x20 && c < 0x7f);
    return 0;
  }
  const auto& map = std::get<ShardMap>(parsed);
  const auto again = ShardMap::parse(map.to_json());
  check(std::holds_alternative<ShardMap>(again) || map.to_json().size() > kMaxMapBytes);
  if (const auto* same = std::get_if<ShardMap>(&again))
    check(same->to_json() == map.to_json() && same->same_owners(map));
  std::uint32_t buckets = 0;
  for (const auto& [host, share] : shares(map)) buckets += share.buckets;
  check(buckets == kBucketCount);
  const std::uint32_t pick = size > 0 ? data[size / 2] : 0;
  check_edit(map, rebalance(map));
  check_edit(map, add_host(map, "new.example", {.at = {}, .buckets = {}}));
  check_edit(map, add_host(map, "new.example",
                           {.at = map.ranges()[pick % map.ranges().size()].low, .buckets = 1 + pick * 257}));
  check_edit(map, remove_host(map, map.hosts()[pick % map.hosts().size()], {}));
  check_edit(map, move_range(map, {static_cast<std::uint16_t>(pick * 255)}, {static_cast<std::uint16_t>(pick * 3)},
                             map.hosts().back(), true));
  return 0;
}
