// The status page: one HTML document with everything in it. The server draws the whole of it, so that it says the same
// without scripts; its script fetches it again and swaps in the parts that changed.
#pragma once

#include "tandem/admin/status.hpp"

#include <string>

namespace tandem::admin {

[[nodiscard]] std::string status_page(const Status& status);
// The page's Content-Security-Policy: its own style and script by their hashes, requests to itself, nothing else.
[[nodiscard]] const std::string& page_policy();

// An SVG ring of who owns what, this host's arcs first in colour. Empty map: one host owns all of it.
[[nodiscard]] std::string ring_picture(const shard::ShardMap* map, const std::string& hostname);

}  // namespace tandem::admin
