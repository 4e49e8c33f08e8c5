// Small maps for the client's tests.
#pragma once

#include "tandem/shard/map.hpp"

#include <memory>

namespace tandem::client {

// Every bucket to one host.
inline std::shared_ptr<const shard::ShardMap> one_host_map(std::uint64_t version, const std::string& host) {
  auto made = shard::ShardMap::make(MapVersion{version}, {shard::Range{0, 65535, host}});
  return std::make_shared<const shard::ShardMap>(std::get<shard::ShardMap>(std::move(made)));
}

}  // namespace tandem::client
