// Where one room lives, as far as its endpoint knows: the newest map it has seen, the host it remembers from earlier
// runs, and the version below which no map is believed (2-sharding 2.8.1). Fetches nothing and reads no clock.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"
#include "tandem/shard/map.hpp"

#include <memory>
#include <optional>
#include <string>

namespace tandem::client {

// What outlives the process. A client keeps its floor for ever: only a newer map moves it.
struct Memory {
  std::optional<MapVersion> floor;  // the highest version seen
  std::string host;                 // where the room was last; empty: never known
  friend bool operator==(const Memory&, const Memory&) = default;
};

class Resolver {
 public:
  Resolver(Bucket bucket, Memory memory);

  enum class Offer : std::uint8_t { newer, known, older };
  // A map was fetched. `max_age` is what its Cache-Control allowed. An older map than the floor is ignored; one of the
  // floor's version is believed when this run has none yet, and never replaces one that it has.
  Offer offer(std::shared_ptr<const shard::ShardMap> map, Duration max_age, TimePoint now);
  void still_current(Duration max_age, TimePoint now);  // 304
  void distrust() noexcept { fresh_until_ = {}; }       // a host or a connection said that the map may be stale

  // Nothing: unknown. An empty string: the map names nobody.
  [[nodiscard]] std::optional<std::string> host() const;
  [[nodiscard]] bool has_map() const noexcept { return map_ != nullptr; }
  [[nodiscard]] bool is_fresh(TimePoint now) const noexcept { return map_ && fresh_until_ && now < *fresh_until_; }
  // When a connected endpoint looks again: every 10 s, or when the map's max-age has passed where that is longer.
  [[nodiscard]] TimePoint refresh_at() const noexcept { return refresh_at_; }
  [[nodiscard]] const Memory& memory() const noexcept { return memory_; }

 private:
  void keep(Duration max_age, TimePoint now);

  Bucket bucket_;
  Memory memory_;
  std::shared_ptr<const shard::ShardMap> map_;
  std::optional<TimePoint> fresh_until_;
  TimePoint refresh_at_{};
};

inline constexpr Duration kRefreshInterval = seconds(10);
inline constexpr Duration kLongestMaxAge = std::chrono::minutes(5);  // a CDN's mistake must not freeze a fleet

// The max-age of a Cache-Control header, in [0, kLongestMaxAge]; zero where it has none, or forbids keeping.
[[nodiscard]] Duration parse_max_age(std::string_view cache_control);

}  // namespace tandem::client
