// How a refusal of a map is put into words; shared by the parser and the checks of a map made from ranges.
#pragma once

#include "tandem/shard/map.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tandem::shard {

inline constexpr std::uint64_t kMaxMapVersion = (std::uint64_t{1} << 53) - 1;

[[nodiscard]] std::string range_path(std::size_t index, std::string_view field = {});  // "ranges[3].host"

// The message is one line of printable text whatever the value holds; each part is cut at 200 bytes.
[[nodiscard]] MapFault fault(MapFaultKind kind, const std::string& where, std::string_view value,
                             std::string_view says);

// What is wrong with one range by itself: its host, then its bounds.
[[nodiscard]] std::optional<MapFault> check_range(const Range& range, std::size_t index);
[[nodiscard]] std::optional<MapFault> check_host(std::string_view host, std::size_t index);

}  // namespace tandem::shard
