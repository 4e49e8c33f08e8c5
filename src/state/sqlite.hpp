// The little of SQLite that the store uses: a connection and a prepared statement, each closed by its destructor.
// Errors are SQLite's extended result codes; the caller says what they mean.
#pragma once

#include "tandem/core/base64.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <sqlite3.h>

namespace tandem::state {

struct CloseConnection {
  void operator()(sqlite3* p) const noexcept { sqlite3_close_v2(p); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* p) const noexcept { sqlite3_finalize(p); }
};
using ConnectionPtr = std::unique_ptr<sqlite3, CloseConnection>;

// A prepared statement that is run again and again. bind() counts from 1; run() and row() return to the start first.
class Statement {
 public:
  Statement() = default;
  // SQLITE_OK, or why it could not be prepared.
  [[nodiscard]] int prepare(sqlite3* connection, const char* sql);

  void bind(int at, std::int64_t value) { sqlite3_bind_int64(statement_.get(), at, value); }
  void bind(int at, ByteView value) {  // the bytes must outlive the run
    sqlite3_bind_blob64(statement_.get(), at, value.data(), value.size(), SQLITE_STATIC);
  }
  void bind_null(int at) { sqlite3_bind_null(statement_.get(), at); }
  void bind_text(int at, const char* value) { sqlite3_bind_text(statement_.get(), at, value, -1, SQLITE_STATIC); }

  // To the end, rows ignored: SQLITE_OK or an error.
  [[nodiscard]] int run();
  // One row: SQLITE_ROW, SQLITE_DONE or an error. The columns hold until done().
  [[nodiscard]] int row();
  void done() { sqlite3_reset(statement_.get()); }

  [[nodiscard]] std::int64_t integer(int column) { return sqlite3_column_int64(statement_.get(), column); }
  [[nodiscard]] bool is_null(int column) { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  [[nodiscard]] ByteView blob(int column) {
    const auto* data = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_.get(), column));
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
  }

 private:
  std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement_;
};

[[nodiscard]] int execute(sqlite3* connection, const char* sql);
// The single integer that a query gives (a PRAGMA, say), or nothing.
[[nodiscard]] std::optional<std::int64_t> query_integer(sqlite3* connection, const char* sql);

}  // namespace tandem::state
