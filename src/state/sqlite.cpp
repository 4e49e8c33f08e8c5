#include "state/sqlite.hpp"

namespace tandem::state {

int Statement::prepare(sqlite3* connection, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  statement_.reset(statement);
  return code;
}

int Statement::row() {
  sqlite3_reset(statement_.get());
  return sqlite3_step(statement_.get());
}

int Statement::run() {
  int code = row();
  while (code == SQLITE_ROW) code = sqlite3_step(statement_.get());
  done();
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

int execute(sqlite3* connection, const char* sql) { return sqlite3_exec(connection, sql, nullptr, nullptr, nullptr); }

std::optional<std::int64_t> query_integer(sqlite3* connection, const char* sql) {
  Statement statement;
  if (statement.prepare(connection, sql) != SQLITE_OK || statement.row() != SQLITE_ROW) return std::nullopt;
  return statement.integer(0);
}

}  // namespace tandem::state
