// Undoes a gzip coding that nobody asked for, so that `map check URL` can say what is wrong instead of "not JSON".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::app {

// Nothing where it is not gzip, is cut, or would be larger than max_bytes. The checksum is not looked at: the map's own
// rules are.
[[nodiscard]] std::optional<std::string> gunzip(std::string_view data, std::size_t max_bytes);

}  // namespace tandem::app
