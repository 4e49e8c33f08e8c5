// The shard map as it is published now, fetched once as the relay of a configuration would: for --check --online, the
// doctor and explain, which hold it against what the relay has or should have.
#pragma once

#include "tandem/config/config.hpp"
#include "tandem/shard/map.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace tandem::app {

struct PublishedMap {
  shard::ShardMap map;
  std::optional<WallTime> server_time;  // the server's clock, where it told it
};
struct UnpublishedMap {
  std::string why;          // "connect: Connection refused"; or what is wrong with the text
  bool unreadable = false;  // it came, but is no valid map
};
[[nodiscard]] std::variant<PublishedMap, UnpublishedMap> fetch_published(const config::ShardMapSource& source);

[[nodiscard]] std::uint32_t buckets_of(const shard::ShardMap& map, const std::string& host);

}  // namespace tandem::app
