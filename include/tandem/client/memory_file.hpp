// Keeps what a client remembers of a room across runs (2-sharding 2.8.1): the highest map version it has seen, which it
// never forgets, and the host where the room was last. One small JSON file, written whole: new, synced, renamed.
#pragma once

#include "tandem/client/resolver.hpp"

#include <string>

#include <boost/system/error_code.hpp>

namespace tandem::client {

// Nothing remembered where there is no file, or where it cannot be understood: that costs one fetch of the map before
// the first connection, and the floor.
[[nodiscard]] Memory load_memory(const std::string& path);
[[nodiscard]] boost::system::error_code save_memory(const std::string& path, const Memory& memory);

}  // namespace tandem::client
