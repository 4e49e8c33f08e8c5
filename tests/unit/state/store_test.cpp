#include "tandem/state/store.hpp"

#include "unit/state/temporary_folder.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace tandem::state {
namespace {

WallTime at(std::int64_t s) { return WallTime(seconds(s)); }

RoomKey key(std::uint32_t n) { return sha256(bytes_of(std::to_string(n))); }

relay::StoredRoom stored(std::uint8_t n, std::int64_t last) {
  return {.verifier = {n, 2, 3},
          .registrant = n % 2 == 1 ? std::optional(relay::KeyId{n}) : std::nullopt,
          .last_activity = at(last)};
}

// One statement on the file, as another program would run it.
void run_sql(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct StoreTest : testing::Test {
  TemporaryFolder folder;
  std::string path = folder / "state.db";

  Store open() {
    auto opened = Store::open(path);
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
  }
  static void apply(Store& store, const Changes& changes) {
    Store::Applied applied;
    const auto fault = store.apply(changes, applied);
    ASSERT_FALSE(fault) << fault->message;
  }
};

TEST_F(StoreTest, GivesBackWhatItWasGivenAfterBeingOpenedAgain) {
  {
    Store store = open();
    Changes c;
    c.put(key(1), stored(1, 100));
    c.put(key(2), stored(2, 200));
    c.count({9}, 0xffffffff, at(5));
    c.floor = MapVersion{(1ull << 53) - 1};
    c.egress = Egress{2026 * 12 + 5, 1ull << 60};
    apply(store, c);
  }
  Store store = open();
  const auto one = store.room(key(1)).value(), two = store.room(key(2)).value();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->verifier, stored(1, 0).verifier);
  EXPECT_EQ(one->registrant, relay::KeyId{1});
  EXPECT_EQ(one->last_activity, at(100));
  EXPECT_EQ(two->registrant, std::nullopt);
  EXPECT_EQ(store.room(key(3)).value(), std::nullopt);
  EXPECT_EQ(store.counter({9}).value(), 0xffffffffu);
  EXPECT_EQ(store.counter({8}).value(), 0u);
  EXPECT_EQ(store.floor().value(), (MapVersion{(1ull << 53) - 1}));
  EXPECT_EQ(store.egress().value(), (Egress{2026 * 12 + 5, 1ull << 60}));
}

TEST_F(StoreTest, IsCreatedForItsOwnerAlone) {
  open();
  struct stat is{};
  ASSERT_EQ(::stat(path.c_str(), &is), 0);
  EXPECT_EQ(is.st_mode & 0777, 0600u);
}

TEST_F(StoreTest, TouchesOnlyForwardsAndOnlyRoomsThatAreThere) {
  Store store = open();
  Changes c;
  c.put(key(1), stored(1, 100));
  apply(store, c);
  Changes touch;
  touch.touch(key(1), at(150));
  touch.touch(key(2), at(150));
  apply(store, touch);
  EXPECT_EQ(store.room(key(1)).value()->last_activity, at(150));
  EXPECT_EQ(store.room(key(2)).value(), std::nullopt);
  Changes back;
  back.touch(key(1), at(120));
  apply(store, back);
  EXPECT_EQ(store.room(key(1)).value()->last_activity, at(150));
}

TEST_F(StoreTest, CountersNeverGoBack) {
  Store store = open();
  Changes c, less;
  c.count({1}, 10, at(1));
  less.count({1}, 4, at(2));
  apply(store, c);
  apply(store, less);
  EXPECT_EQ(store.counter({1}).value(), 10u);
}

TEST_F(StoreTest, SweepsWhatIsIdleButNothingThatWasTouchedInTheSameBatch) {
  Store store = open();
  Changes c;
  for (std::uint8_t n = 0; n < 4; ++n) c.put(key(n), stored(n, 100 + n));
  c.count({1}, 7, at(50));
  c.count({2}, 7, at(60));
  apply(store, c);
  Changes sweep;
  sweep.touch(key(0), at(500));
  sweep.sweep_later({at(102), at(60)});
  apply(store, sweep);
  EXPECT_TRUE(store.room(key(0)).value());
  EXPECT_FALSE(store.room(key(1)).value());
  EXPECT_TRUE(store.room(key(2)).value()) << "idle since exactly then is not before";
  EXPECT_EQ(store.counter({1}).value(), 0u);
  EXPECT_EQ(store.counter({2}).value(), 7u);
}

TEST_F(StoreTest, SweepsABoundedNumberAtATime) {
  Store store = open();
  Changes c;
  for (std::uint32_t n = 0; n < Store::kSweepRows + 10; ++n) c.put(key(n), stored(1, 1));
  apply(store, c);
  Changes sweep;
  sweep.sweep_later({at(10), at(0)});
  Store::Applied applied;
  ASSERT_FALSE(store.apply(sweep, applied));
  EXPECT_TRUE(applied.more);
  ASSERT_FALSE(store.apply(sweep, applied));
  EXPECT_FALSE(applied.more);
  for (std::uint32_t n = 0; n < Store::kSweepRows + 10; n += 100) EXPECT_FALSE(store.room(key(n)).value()) << n;
}

TEST_F(StoreTest, LeavesNoTraceOfAWipedRoomInItsFilesAfterACheckpoint) {
  Store store = open();
  Changes c, wipe;
  relay::StoredRoom secret;
  secret.verifier.fill(0xc7);
  secret.registrant.emplace().fill(0xd8);
  c.put(key(1), secret);
  apply(store, c);
  EXPECT_NE((content(path) + content(path + "-wal")).find(std::string(32, '\xc7')), std::string::npos);
  wipe.wipe(key(1));
  apply(store, wipe);
  ASSERT_FALSE(store.checkpoint());
  const std::string left = content(path) + content(path + "-wal");
  EXPECT_EQ(left.find(std::string(32, '\xc7')), std::string::npos);
  EXPECT_EQ(left.find(std::string(32, '\xd8')), std::string::npos);
  const RoomKey k = key(1);
  EXPECT_EQ(left.find(std::string(k.begin(), k.end())), std::string::npos);
}

TEST_F(StoreTest, ClearsTheFloorAlone) {
  Store store = open();
  Changes c;
  c.floor = MapVersion{8};
  c.put(key(1), stored(1, 1));
  apply(store, c);
  ASSERT_FALSE(store.clear_floor());
  EXPECT_EQ(store.floor().value(), std::nullopt);
  EXPECT_TRUE(store.room(key(1)).value());
}

TEST_F(StoreTest, RefusesANewerSchemaAndLeavesEveryByteAlone) {
  open();
  run_sql(path, "PRAGMA user_version = 2");
  const std::string before = content(path);
  for (int i = 0; i < 2; ++i) {
    const auto opened = Store::open(path);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, Fault::Kind::newer);
    EXPECT_NE(opened.error().message.find("newer"), std::string::npos);
  }
  EXPECT_EQ(Store::inspect(path)->kind, Fault::Kind::newer);
  EXPECT_EQ(content(path), before);
}

TEST_F(StoreTest, FindsDamageWhereverItIs) {
  {
    Store store = open();
    Changes c;
    for (std::uint32_t n = 0; n < 500; ++n) c.put(key(n), stored(1, n));
    apply(store, c);
  }
  const std::string whole = content(path);
  const auto damaged_by = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const auto opened = Store::open(path);
    return !opened && opened.error().kind == Fault::Kind::damaged &&
           opened.error().message.find("damaged") != std::string::npos;
  };
  EXPECT_TRUE(damaged_by("this is no database, and never was one; it goes on for a while so that nobody mistakes it"));
  EXPECT_TRUE(damaged_by("x"));
  EXPECT_TRUE(damaged_by(std::string(8192, '\0')));
  EXPECT_TRUE(damaged_by(whole.substr(0, whole.size() / 2))) << "cut in half";
  std::string holed = whole;
  holed.replace(8192, 4096, 4096, '\xff');
  EXPECT_TRUE(damaged_by(holed)) << "a page of junk";
  EXPECT_FALSE(damaged_by(whole));
}

TEST_F(StoreTest, CallsAFileWithoutItsTablesDamaged) {
  open();
  run_sql(path, "DROP TABLE counters");
  const auto opened = Store::open(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Fault::Kind::damaged);
}

TEST_F(StoreTest, NeverWritesIntoAnotherProgramsDatabase) {
  run_sql(path, "CREATE TABLE recipes(name TEXT); INSERT INTO recipes VALUES('soup')");
  const auto opened = Store::open(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Fault::Kind::damaged);
  EXPECT_NE(content(path).find("soup"), std::string::npos);
}

TEST_F(StoreTest, NeverWritesIntoAnotherProgramsDatabaseOfTheSameVersion) {
  run_sql(path, "CREATE TABLE rooms(name TEXT); PRAGMA user_version = 1");
  const std::string before = content(path);
  const auto opened = Store::open(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Fault::Kind::damaged);
  EXPECT_EQ(content(path), before);
}

TEST_F(StoreTest, CallsAnEmptyFileBesideALogDamagedAndKeepsTheLog) {
  {
    Store store = open();
    Changes c;
    c.put(key(1), stored(1, 1));
    apply(store, c);
    std::filesystem::copy_file(path + "-wal", folder / "kept");
  }
  std::filesystem::resize_file(path, 0);
  std::filesystem::copy_file(folder / "kept", path + "-wal");
  const auto opened = Store::open(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Fault::Kind::damaged);
  const auto aside = Store::set_aside(path, at(0));
  ASSERT_TRUE(aside) << aside.error().message;
  EXPECT_EQ(content(*aside + "-wal"), content(folder / "kept"));
}

TEST_F(StoreTest, WritesNothingIntoAFileThatWasRemovedOrReplaced) {
  Changes c;
  c.put(key(1), stored(1, 1));
  Store::Applied applied;
  Store removed = open();
  std::filesystem::remove(path);
  ASSERT_TRUE(removed.apply(c, applied));
  EXPECT_EQ(removed.apply(c, applied)->kind, Fault::Kind::gone);
  std::ofstream(path) << "another";
  EXPECT_EQ(removed.apply(c, applied)->kind, Fault::Kind::gone);
  EXPECT_EQ(content(path), "another");
}

TEST_F(StoreTest, CallsARowOfTheWrongSizeDamaged) {
  Store store = open();
  Changes c;
  c.put(key(1), stored(1, 1));
  apply(store, c);
  run_sql(path, "UPDATE rooms SET verifier = x'00'");
  const auto room = store.room(key(1));
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().kind, Fault::Kind::damaged);
}

TEST_F(StoreTest, SetsADamagedFileAsideInItsFolderWithoutOverwritingAnother) {
  std::ofstream(path) << "junk";
  const auto first = Store::set_aside(path, at(0));
  ASSERT_TRUE(first) << first.error().message;
  std::ofstream(path) << "more junk";
  const auto second = Store::set_aside(path, at(0));
  ASSERT_TRUE(second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(*first, path + ".damaged-19700101T000000Z");
  EXPECT_EQ(content(*first), "junk");
  EXPECT_EQ(content(*second), "more junk");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(StoreTest, SaysWhatStandsInItsWayAndNamesTheFile) {
  const auto fault_of = [](const std::string& p) {
    const auto opened = Store::open(p);
    EXPECT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, Fault::Kind::unavailable);
    EXPECT_NE(opened.error().message.find(p), std::string::npos);
    EXPECT_TRUE(Store::inspect(p)) << p;
    return opened.error().message;
  };
  EXPECT_NE(fault_of(folder / "none/state.db").find("No such file"), std::string::npos);
  std::filesystem::create_directory(folder / "folder.db");
  EXPECT_NE(fault_of(folder / "folder.db").find("directory"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder / "pipe.db").c_str(), 0600), 0);
  EXPECT_NE(fault_of(folder / "pipe.db").find("not a file"), std::string::npos);
}

TEST_F(StoreTest, InspectsWithoutTouching) {
  EXPECT_FALSE(Store::inspect(path));
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    Store running = open();
    EXPECT_FALSE(Store::inspect(path)) << "beside a running relay";
  }
  EXPECT_FALSE(Store::inspect(path));
  std::ofstream(path, std::ios::trunc) << "junk";
  EXPECT_EQ(Store::inspect(path)->kind, Fault::Kind::damaged);
  EXPECT_EQ(content(path), "junk");
}

TEST_F(StoreTest, WithAMillionRoomsOpensInstantlyAndAnswersAtOnce) {
  {
    Store store = open();
    run_sql(path,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) "
            "INSERT INTO rooms SELECT CAST(printf('%032d', i) AS BLOB), zeroblob(32), NULL, i FROM n");
    Changes c;
    c.put(key(1), stored(1, 2000000));
    apply(store, c);
  }
  const auto begin = std::chrono::steady_clock::now();
  Store store = open();
  EXPECT_TRUE(store.room(key(1)).value());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace tandem::state
