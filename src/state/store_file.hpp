// The file around the database: what stands at the path, and what SQLite's errors mean.
#pragma once

#include "tandem/state/store.hpp"

#include <string>
#include <string_view>

#include <sqlite3.h>

namespace tandem::state {

// Makes sure that a regular file stands at the path, creating an empty one (0600), so that SQLite never does with other
// rights.
[[nodiscard]] std::optional<Fault> prepare_file(const std::string& path);

// What the first bytes of the file say, before SQLite gets to open it: it takes a file of a few bytes for an empty one,
// and leaves companions beside one that is not ours to touch.
[[nodiscard]] std::optional<Fault> read_header(const std::string& path);

[[nodiscard]] Fault newer_fault(const std::string& path, std::int64_t version);
[[nodiscard]] Fault sqlite_fault(sqlite3* connection, int code, const std::string& path, std::string_view doing);

}  // namespace tandem::state
