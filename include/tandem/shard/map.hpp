// The shard map: which host owns which bucket (2-sharding 2.2). Parsing is strict; every refusal names its kind, where
// and what.
#pragma once

#include "tandem/core/authority.hpp"
#include "tandem/core/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem::shard {

inline constexpr std::size_t kMaxMapBytes = 1024 * 1024;

struct Range {
  std::uint16_t low = 0, high = 0;  // inclusive buckets
  std::string host;                 // bare authority; under .invalid: nobody
  friend bool operator==(const Range&, const Range&) = default;
};

enum class MapFaultKind : std::uint8_t {
  malformed,
  negative_version,
  empty_ranges,
  invalid_host,
  invalid_range,
  gap_or_overlap,
  too_large
};
[[nodiscard]] std::string_view label(MapFaultKind k) noexcept;  // "gap_or_overlap"

struct MapFault {
  MapFaultKind kind = MapFaultKind::malformed;
  std::string where;    // "ranges[3].host", "version", may be empty
  std::string value;    // the offending value
  std::string message;  // one line for people: says kind, where and value
};

class ShardMap {
 public:
  // Valid maps only. Ranges come out ascending; hosts are interned.
  [[nodiscard]] static std::variant<ShardMap, MapFault> parse(std::string_view json);
  [[nodiscard]] static std::variant<ShardMap, MapFault> make(MapVersion version, std::vector<Range> ranges);

  [[nodiscard]] MapVersion version() const noexcept { return version_; }
  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }
  // O(1). The owner as the map names it, a name under .invalid included.
  [[nodiscard]] const std::string& host_of(Bucket b) const noexcept { return hosts_[owner_[b.value]]; }
  // As above, but empty where the owner is under .invalid: nobody.
  [[nodiscard]] std::string_view owner_of(Bucket b) const noexcept;
  [[nodiscard]] const std::vector<std::string>& hosts() const noexcept {
    return hosts_;
  }  // each once, by first range, nobody included
  [[nodiscard]] bool same_owners(const ShardMap& other) const noexcept;  // every bucket
  [[nodiscard]] std::string to_json() const;  // canonical: version first, ascending, one range a line, a final newline

 private:
  ShardMap() = default;
  MapVersion version_;
  std::vector<Range> ranges_;
  std::vector<std::string> hosts_;
  std::vector<std::uint16_t> owner_;  // 65,536 indexes into hosts_ ... 65,536 hosts at most
  std::vector<bool> nobody_;          // by index into hosts_: a name under .invalid
};

// A map somebody edited by hand: its version is the one it was drafted from, or absent (2b-map-tool, publish). Valid
// otherwise.
struct Draft {
  std::optional<MapVersion> drafted_from;
  ShardMap map;  // its version: drafted_from, or 0
  [[nodiscard]] static std::variant<Draft, MapFault> parse(std::string_view json, bool version_required = false);
};

}  // namespace tandem::shard
