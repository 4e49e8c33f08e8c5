// The edits of a map (2b-map-tool, "Rules of the edits"). Pure: a map and an argument give ranges or a refusal. Every
// result is a partition of the ring, its adjacent ranges of one host merged, ascending; no edit moves a bucket or a
// boundary it need not.
//
// K counts hosts, not names under .invalid. An arc is a maximal run of one owner on the ring, so it may cross the seam
// between 65535 and 0, where the map has to write it as two ranges.
#pragma once

#include "tandem/shard/map.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem::shard {

using Ranges = std::vector<Range>;

enum class EditError : std::uint8_t {
  invalid_host,   // out of form, or under .invalid where a host must serve
  invalid_range,  // more buckets than can be given
  unknown_host,   // not in the map
  host_exists,
  last_host,
  not_a_boundary,  // --at
};
[[nodiscard]] std::string_view label(EditError e) noexcept;  // "unknown_host"; not_a_boundary: "usage"

struct EditFault {
  EditError error = EditError::invalid_host;
  std::string argument;  // "HOST", "--into", "--at", "--buckets": what to name
  std::string value;     // as given
  std::string message;   // one line: what would have happened, or what to do
  std::string nearest;   // unknown_host: the closest name in the map, may be empty
};
using Edited = std::variant<Ranges, EditFault>;

// Equal arcs in the order given; the first (65536 mod K) get the odd bucket.
[[nodiscard]] Edited init_ranges(const std::vector<std::string>& hosts);

// Carves `buckets` (default floor(65536/K), or what can be had) straddling the boundary `at` (the low of a range, 0 the
// seam; default: the one whose two arcs are together the widest), half from each side.
struct AddOptions {
  std::optional<std::uint32_t> at;
  std::optional<std::uint32_t> buckets;
};
[[nodiscard]] Edited add_host(const ShardMap& map, const std::string& host, const AddOptions& options);

// Each arc goes whole to the neighbour with fewer buckets, or to `into`.
[[nodiscard]] Edited remove_host(const ShardMap& map, const std::string& host, const std::optional<std::string>& into);

// low > high crosses the seam. The host must be in the map, under .invalid, or `fresh`.
[[nodiscard]] Edited move_range(const ShardMap& map, Bucket low, Bucket high, const std::string& host, bool fresh);

// One equal arc a host, in ring order, from bucket 0; the map itself where it is balanced already.
[[nodiscard]] Edited rebalance(const ShardMap& map);

// Adjacent ranges of one host become one; `ranges` ascending.
[[nodiscard]] Ranges merged(Ranges ranges);
[[nodiscard]] bool is_merged(const Ranges& ranges);

// A maximal run of one owner on the ring: `width` buckets from `start` on, across the seam where start + width > 65536.
struct Arc {
  std::uint32_t start = 0, width = 0;
  std::string host;
  friend bool operator==(const Arc&, const Arc&) = default;
};
[[nodiscard]] std::vector<Arc> arcs_of(const ShardMap& map);  // ascending by start

}  // namespace tandem::shard
