// Where a new host's buckets come from. Internal to add_host, which has judged the host's name.
#pragma once

#include "tandem/shard/map_edit.hpp"

namespace tandem::shard {

// fair_share: what the host gets where options.buckets does not say.
[[nodiscard]] Edited carve(const ShardMap& map, const std::string& host, const AddOptions& options,
                           std::uint32_t fair_share);

}  // namespace tandem::shard
