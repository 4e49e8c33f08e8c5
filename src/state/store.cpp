#include "state/store_impl.hpp"

#include <algorithm>

namespace tandem::state {

namespace {

constexpr int kApplicationId = 0x54414e44;  // "TAND", so that `file` and we know whose it is

// Written small: a log of 64 pages before it is folded into the file, so that a full disk is noticed late rather than
// early.
constexpr char kSettings[] = R"sql(
  PRAGMA busy_timeout = 2000;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA secure_delete = ON;
  PRAGMA temp_store = MEMORY;
  PRAGMA wal_autocheckpoint = 64;
  PRAGMA journal_size_limit = 1048576;
)sql";

constexpr char kSchema[] = R"sql(
  BEGIN IMMEDIATE;
  CREATE TABLE rooms(key BLOB PRIMARY KEY NOT NULL, verifier BLOB NOT NULL, registrant BLOB, last_activity INTEGER NOT NULL)
    WITHOUT ROWID;
  CREATE INDEX rooms_by_activity ON rooms(last_activity);
  CREATE INDEX rooms_by_bucket ON rooms(substr(key, 31, 2));
  CREATE TABLE counters(key BLOB PRIMARY KEY NOT NULL, counter INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
  CREATE INDEX counters_by_use ON counters(used);
  CREATE TABLE meta(name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) WITHOUT ROWID;
  PRAGMA application_id = 1413566020;
  PRAGMA user_version = 1;
  COMMIT;
)sql";
static_assert(kApplicationId == 1413566020 && kSchemaVersion == 1);

constexpr std::int64_t kCheckedBytes = 16 * 1024 * 1024;  // up to here a whole check at start takes less than 0.1 s

bool copy_exactly(ByteView from, Sha256& into) {
  if (from.size() != into.size()) return false;
  std::ranges::copy(from, into.begin());
  return true;
}

}  // namespace

// Is it ours, and whole? Writes nothing, so that what is damaged can be looked into later as it was found.
std::optional<Fault> Store::Impl::check(std::int64_t version) {
  if (version == 0) {
    if (query_integer(connection.get(), "SELECT count(*) FROM sqlite_schema") == 0) return std::nullopt;
    return damaged("it is another program's database");
  }
  if (query_integer(connection.get(), "PRAGMA application_id") != kApplicationId) {
    return damaged("it is another program's database");
  }
  const auto bytes =
      query_integer(connection.get(), "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
  if (bytes && *bytes > kCheckedBytes) return std::nullopt;
  Statement quick;
  int code = quick.prepare(connection.get(), "PRAGMA quick_check(1)");
  if (code == SQLITE_OK) code = quick.row();
  if (code != SQLITE_ROW) return fault(code, "read");
  if (!std::ranges::equal(quick.blob(0), bytes_of("ok"))) return damaged("its check failed");
  return std::nullopt;
}

std::optional<Fault> Store::Impl::prepare() {
  const std::pair<Statement*, const char*> all[] = {
      {&get_room, "SELECT verifier, registrant, last_activity FROM rooms WHERE key = ?1"},
      {&put_room,
       "INSERT INTO rooms VALUES(?1, ?2, ?3, ?4) ON CONFLICT(key) DO UPDATE SET verifier = excluded.verifier, "
       "registrant = excluded.registrant, last_activity = excluded.last_activity"},
      {&wipe_room, "DELETE FROM rooms WHERE key = ?1"},
      {&wipe_bucket, "DELETE FROM rooms WHERE substr(key, 31, 2) = ?1"},
      {&touch_room, "UPDATE rooms SET last_activity = ?2 WHERE key = ?1 AND last_activity < ?2"},
      {&sweep_rooms, "DELETE FROM rooms WHERE key IN (SELECT key FROM rooms WHERE last_activity < ?1 LIMIT ?2)"},
      {&get_counter, "SELECT counter FROM counters WHERE key = ?1"},
      {&put_counter,
       "INSERT INTO counters VALUES(?1, ?2, ?3) ON CONFLICT(key) DO UPDATE SET "
       "counter = max(counter, excluded.counter), used = max(used, excluded.used)"},
      {&sweep_counters, "DELETE FROM counters WHERE key IN (SELECT key FROM counters WHERE used < ?1 LIMIT ?2)"},
      {&get_meta, "SELECT value FROM meta WHERE name = ?1"},
      {&put_meta, "INSERT INTO meta VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET value = excluded.value"},
  };
  for (const auto& [statement, sql] : all) {
    const int code = statement->prepare(connection.get(), sql);
    if (code == SQLITE_ERROR) return damaged("it lacks a table or column");
    if (code != SQLITE_OK) return fault(code, "read");
  }
  return std::nullopt;
}

Outcome<std::optional<std::int64_t>> Store::Impl::meta(const char* name) {
  get_meta.bind_text(1, name);
  const int code = get_meta.row();
  std::optional<std::int64_t> value;
  if (code == SQLITE_ROW) value = get_meta.integer(0);
  get_meta.done();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return fault(code, "read");
  return value;
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Outcome<Store> Store::open(const std::string& path) {
  if (auto bad = prepare_file(path)) return std::move(*bad);
  if (auto bad = read_header(path)) return std::move(*bad);
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  sqlite3* connection = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &connection,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  impl->connection.reset(connection);
  if (code != SQLITE_OK) return impl->fault(code, "open");
  sqlite3_busy_timeout(connection, 2000);

  // Before anything is written: whose is it, and of which version?
  const auto version = query_integer(connection, "PRAGMA user_version");
  if (!version) return impl->fault(sqlite3_extended_errcode(connection), "read");
  if (*version > kSchemaVersion) {
    sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    return newer_fault(path, *version);
  }
  if (auto bad = impl->check(*version)) {
    sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    return std::move(*bad);
  }
  if ((code = execute(connection, kSettings)) != SQLITE_OK) return impl->fault(code, "open");
  if (*version == 0 && (code = execute(connection, kSchema)) != SQLITE_OK) return impl->fault(code, "write");
  if (auto bad = impl->prepare()) return std::move(*bad);
  return Store(std::move(impl));
}

Outcome<std::optional<relay::StoredRoom>> Store::room(const RoomKey& key) {
  Statement& get = impl_->get_room;
  get.bind(1, key);
  const int code = get.row();
  if (code == SQLITE_DONE) {
    get.done();
    return std::optional<relay::StoredRoom>();
  }
  if (code != SQLITE_ROW) {
    get.done();
    return impl_->fault(code, "read");
  }
  relay::StoredRoom room;
  bool good = copy_exactly(get.blob(0), room.verifier);
  if (!get.is_null(1)) good = copy_exactly(get.blob(1), room.registrant.emplace()) && good;
  room.last_activity = WallTime(std::chrono::seconds(get.integer(2)));
  get.done();
  if (!good) return impl_->damaged("a verifier or key id is not 32 bytes");
  return std::optional(room);
}

Outcome<std::uint32_t> Store::counter(const relay::KeyId& key) {
  Statement& get = impl_->get_counter;
  get.bind(1, key);
  const int code = get.row();
  const auto value = code == SQLITE_ROW ? static_cast<std::uint32_t>(get.integer(0)) : 0;
  get.done();
  if (code != SQLITE_ROW && code != SQLITE_DONE) return impl_->fault(code, "read");
  return value;
}

Outcome<std::optional<MapVersion>> Store::floor() {
  const auto value = impl_->meta("floor");
  if (!value) return value.error();
  return *value ? std::optional(MapVersion{static_cast<std::uint64_t>(**value)}) : std::nullopt;
}

Outcome<std::optional<Egress>> Store::egress() {
  const auto month = impl_->meta("egress_month");
  if (!month) return month.error();
  const auto bytes = impl_->meta("egress_bytes");
  if (!bytes) return bytes.error();
  if (!*month || !*bytes) return std::optional<Egress>();
  return std::optional(Egress{static_cast<std::int32_t>(**month), static_cast<std::uint64_t>(**bytes)});
}

bool Store::is_read_only() const { return sqlite3_db_readonly(impl_->connection.get(), "main") == 1; }

std::optional<Fault> Store::checkpoint() {
  return impl_->answer(
      sqlite3_wal_checkpoint_v2(impl_->connection.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr));
}

std::optional<Fault> Store::clear_floor() {
  return impl_->answer(execute(impl_->connection.get(), "DELETE FROM meta WHERE name = 'floor'"));
}

}  // namespace tandem::state
