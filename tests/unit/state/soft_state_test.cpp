#include "tandem/state/soft_state.hpp"

#include "unit/state/temporary_folder.hpp"

#include <csignal>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace tandem::state {
namespace {

RoomName room(std::uint32_t n) { return RoomName(sha256(bytes_of(std::to_string(n)))); }

struct SoftStateTest : testing::Test {
  TemporaryFolder folder;
  std::string path = folder / "state.db";
  std::vector<std::string> faults, recoveries;
  Now now{TimePoint(seconds(1000)), WallTime(seconds(1'800'000'000))};

  SoftState make(std::optional<std::string> at) {
    return {std::move(at),
            {[this](const std::string& m) { faults.push_back(m); },
             [this](const std::string& m) { recoveries.push_back(m); }}};
  }
  SoftState opened() {
    SoftState s = make(path);
    EXPECT_FALSE(s.open(now));
    return s;
  }
  void pass(Duration d) {
    now.mono += d;
    now.wall += std::chrono::duration_cast<std::chrono::seconds>(d);
  }
  [[nodiscard]] relay::StoredRoom stored(std::uint8_t n) const { return {{n}, relay::KeyId{n}, now.wall}; }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
  }
};

TEST_F(SoftStateTest, AnswersFromMemoryBeforeAndFromDiskAfterAFlush) {
  SoftState s = opened();
  s.put(room(1), stored(1), now);
  s.count({1}, 9, now);
  EXPECT_EQ(s.room(room(1), now)->verifier, stored(1).verifier);
  EXPECT_EQ(s.counter({1}, now), 9u);
  ASSERT_TRUE(s.flush(now));
  EXPECT_EQ(s.room(room(1), now)->verifier, stored(1).verifier);
  EXPECT_EQ(s.counter({1}, now), 9u);
  EXPECT_TRUE(faults.empty());
}

TEST_F(SoftStateTest, WantsToWriteWithinItsDelayAndNotWithoutAChange) {
  SoftState s = opened();
  EXPECT_EQ(s.next_flush(), kNever);
  s.touch(room(1), now.wall, now);
  EXPECT_EQ(s.next_flush(), now.mono + kWriteDelay);
  const TimePoint first = s.next_flush();
  pass(milliseconds(200));
  s.touch(room(2), now.wall, now);
  EXPECT_EQ(s.next_flush(), first) << "the first change sets the time";
  EXPECT_TRUE(s.flush(now));
  EXPECT_EQ(s.next_flush(), kNever);
}

TEST_F(SoftStateTest, SurvivesBeingOpenedAgain) {
  {
    SoftState s = opened();
    s.put(room(1), stored(1), now);
    s.set_floor({12}, now);
    s.set_egress({24000, 77}, now);
    ASSERT_TRUE(s.flush(now));
    s.wipe(room(1), now);
    s.put(room(2), stored(2), now);
    ASSERT_TRUE(s.flush(now));
  }
  SoftState s = opened();
  EXPECT_FALSE(s.room(room(1), now));
  EXPECT_TRUE(s.room(room(2), now));
  EXPECT_EQ(s.floor(now), MapVersion{12});
  EXPECT_EQ(s.egress(now), (Egress{24000, 77}));
}

TEST_F(SoftStateTest, WipedRoomIsGoneAtOnceThoughTheDiskStillHoldsIt) {
  SoftState s = opened();
  s.put(room(1), stored(1), now);
  ASSERT_TRUE(s.flush(now));
  s.wipe(room(1), now);
  EXPECT_FALSE(s.room(room(1), now));
}

TEST_F(SoftStateTest, AWipedBucketLosesItsRoomsOnDiskAndInMemoryAndNoOthers) {
  for (const bool on_disk : {true, false}) {
    SoftState s = make(on_disk ? std::optional(path) : std::nullopt);
    ASSERT_FALSE(s.open(now));
    s.put(room(1), stored(1), now);
    s.put(room(2), stored(2), now);
    ASSERT_NE(room(1).bucket(), room(2).bucket());
    ASSERT_TRUE(s.flush(now));
    s.touch(room(1), now.wall, now);
    s.wipe(std::vector{room(1).bucket(), room(3).bucket()}, now);
    EXPECT_FALSE(s.room(room(1), now));
    EXPECT_TRUE(s.room(room(2), now));
    s.put(room(3), stored(3), now);  // it came back
    ASSERT_TRUE(s.flush(now));
    EXPECT_FALSE(s.room(room(1), now));
    EXPECT_TRUE(s.room(room(2), now));
    EXPECT_TRUE(s.room(room(3), now));
  }
  EXPECT_TRUE(faults.empty());
}

TEST_F(SoftStateTest, ForgetsBucketsInPiecesAndAnswersMeanwhileAsIfAllWereGone) {
  SoftState s = opened();
  constexpr std::uint32_t kRooms = 3 * Store::kSweepRows;
  std::set<Bucket> all;
  for (std::uint32_t n = 0; n < kRooms; ++n) {
    s.put(room(n), stored(1), now);
    all.insert(room(n).bucket());
  }
  ASSERT_TRUE(s.flush(now));
  s.wipe({all.begin(), all.end()}, now);
  std::uint32_t back = 0;  // a room whose bucket comes late in the line
  for (std::uint32_t n = 0; n < kRooms; ++n) {
    if (room(n).bucket() > room(back).bucket()) back = n;
  }
  s.put(room(back), stored(9), now);
  ASSERT_TRUE(s.flush(now));
  EXPECT_EQ(s.next_flush(), now.mono) << "there is more to forget";
  for (std::uint32_t n = 0; n < kRooms; ++n) ASSERT_EQ(s.room(room(n), now).has_value(), n == back) << n;
  {
    SoftState killed = opened();
    ASSERT_TRUE(killed.room(room(back), now)) << "what was promised is there, though the forgetting was cut short";
    EXPECT_EQ(killed.room(room(back), now)->verifier, stored(9).verifier);
  }
  int pieces = 1;
  for (; s.next_flush() == now.mono && pieces < 100; ++pieces) ASSERT_TRUE(s.flush(now));
  EXPECT_GT(pieces, 2);
  SoftState again = opened();
  for (std::uint32_t n = 0; n < kRooms; ++n) ASSERT_EQ(again.room(room(n), now).has_value(), n == back) << n;
}

TEST_F(SoftStateTest, TouchCountsBeforeItIsWritten) {
  SoftState s = opened();
  s.put(room(1), stored(1), now);
  ASSERT_TRUE(s.flush(now));
  pass(seconds(100));
  s.touch(room(1), now.wall, now);
  EXPECT_EQ(s.room(room(1), now)->last_activity, now.wall);
}

TEST_F(SoftStateTest, SweepsTheDiskInPiecesUntilNothingIsLeft) {
  SoftState s = opened();
  for (std::uint32_t n = 0; n < 3 * Store::kSweepRows; ++n) s.put(room(n), stored(1), now);
  ASSERT_TRUE(s.flush(now));
  pass(std::chrono::hours(24 * 31));
  s.put(room(0), stored(1), now);
  s.sweep(now.wall - std::chrono::hours(24 * 30), now.wall, now);
  int flushes = 0;
  while (s.next_flush() <= now.mono + kWriteDelay && flushes < 20) {
    now.mono = std::max(now.mono, s.next_flush());
    ASSERT_TRUE(s.flush(now));
    ++flushes;
  }
  EXPECT_GE(flushes, 3);
  EXPECT_EQ(s.next_flush(), kNever);
  EXPECT_TRUE(s.room(room(0), now));
  for (std::uint32_t n = 1; n < 3 * Store::kSweepRows; n += 500) EXPECT_FALSE(s.room(room(n), now)) << n;
}

TEST_F(SoftStateTest, AClockThatJumpedYearsAheadForgetsNoCounter) {
  for (const bool disk : {true, false}) {
    SoftState s = make(disk ? std::optional(path) : std::nullopt);
    EXPECT_FALSE(s.open(now));
    s.count({1}, 4, now);
    ASSERT_TRUE(s.flush(now));
    const WallTime believed = now.wall + seconds(2);
    now.wall += std::chrono::hours(24 * 365 * 10);
    s.sweep(believed - std::chrono::hours(24 * 30), believed, now);
    ASSERT_TRUE(s.flush(now));
    EXPECT_EQ(s.counter({1}, now), 4u);
    s.sweep(now.wall, now.wall, now);
    ASSERT_TRUE(s.flush(now));
    EXPECT_EQ(s.counter({1}, now), 0u) << "a year after its last use";
  }
}

TEST_F(SoftStateTest, WithoutADiskKeepsEverythingInMemoryAndIsAlwaysDurable) {
  SoftState s = make(std::nullopt);
  EXPECT_FALSE(s.open(now));
  s.put(room(1), stored(1), now);
  s.count({1}, 4, now);
  EXPECT_TRUE(s.flush(now));
  EXPECT_EQ(s.next_flush(), kNever);
  EXPECT_TRUE(s.room(room(1), now));
  pass(seconds(10));
  s.touch(room(1), now.wall, now);
  s.touch(room(2), now.wall, now);
  EXPECT_EQ(s.room(room(1), now)->last_activity, now.wall);
  EXPECT_FALSE(s.room(room(2), now));
  s.sweep(now.wall + seconds(1), now.wall, now);
  EXPECT_FALSE(s.room(room(1), now));
  EXPECT_EQ(s.counter({1}, now), 4u) << "counters live longer";
  s.put(room(3), stored(1), now);
  s.wipe(room(3), now);
  EXPECT_FALSE(s.room(room(3), now));
  EXPECT_TRUE(faults.empty());
}

TEST_F(SoftStateTest, SetsADamagedFileAsideAndBeginsAnother) {
  std::ofstream(path) << "this is not a database at all, whatever its name may say";
  SoftState s = opened();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].find("damaged"), std::string::npos);
  EXPECT_NE(faults[0].find(path), std::string::npos);
  EXPECT_FALSE(s.degraded());
  s.put(room(1), stored(1), now);
  EXPECT_TRUE(s.flush(now));
  EXPECT_GE(files(), 2u);
}

TEST_F(SoftStateTest, KeepsEveryByteOfADamagedFileAsItWas) {
  {
    SoftState s = opened();
    for (std::uint32_t n = 0; n < 500; ++n) s.put(room(n), stored(1), now);
    ASSERT_TRUE(s.flush(now));
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    file << std::string(4096, '\xff');
  }
  const auto content = [](const std::string& p) {
    std::ifstream in(p, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const std::string before = content(path);
  SoftState s = opened();
  ASSERT_EQ(faults.size(), 1u);
  const std::size_t name = faults[0].rfind(path);
  EXPECT_EQ(content(faults[0].substr(name)), before) << faults[0];
}

TEST_F(SoftStateTest, FindsDamageWhileRunningAndKeepsWhatItWasAboutToWrite) {
  constexpr std::uint32_t kRooms = 40000;  // more than SQLite caches
  {
    SoftState s = opened();
    for (std::uint32_t n = 0; n < kRooms; ++n) s.put(room(n), stored(1), now);
    ASSERT_TRUE(s.flush(now));
  }
  SoftState s = opened();
  s.put(room(kRooms), stored(5), now);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    file << std::string(std::filesystem::file_size(path) - 8192, '\xff');
  }
  for (std::uint32_t n = 0; n < kRooms && faults.empty(); ++n) (void)s.room(room(n), now);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].find("damaged"), std::string::npos) << faults[0];
  EXPECT_FALSE(s.degraded());
  EXPECT_TRUE(s.flush(now));
  SoftState again = opened();
  EXPECT_TRUE(again.room(room(kRooms), now));
}

TEST_F(SoftStateTest, BeginsAnotherFileWhereItsOwnWasRemovedBeforeItPromisesAnything) {
  for (const bool with_its_log : {true, false}) {
    faults.clear();
    SoftState s = opened();
    s.put(room(1), stored(1), now);
    ASSERT_TRUE(s.flush(now));
    for (const char* companion : {"", "-wal", "-shm"}) {
      if (with_its_log || *companion == 0) std::filesystem::remove(path + companion);
    }
    s.put(room(2), stored(2), now);
    EXPECT_TRUE(s.flush(now));
    EXPECT_FALSE(s.degraded());
    ASSERT_FALSE(faults.empty());
    EXPECT_NE(faults[0].find("removed"), std::string::npos) << faults[0];
    SoftState again = opened();
    EXPECT_TRUE(again.room(room(2), now));
    EXPECT_FALSE(again.room(room(1), now)) << "went with the file";
  }
}

TEST_F(SoftStateTest, GoesOnInMemoryWhereItsFolderWasRemovedAndComesBackWithIt) {
  path = folder / "sub/state.db";
  std::filesystem::create_directory(folder / "sub");
  SoftState s = opened();
  s.put(room(1), stored(1), now);
  ASSERT_TRUE(s.flush(now));
  std::filesystem::remove_all(folder / "sub");
  s.put(room(2), stored(2), now);
  EXPECT_FALSE(s.flush(now));
  EXPECT_TRUE(s.degraded());
  std::filesystem::create_directory(folder / "sub");
  pass(kRetryDelay);
  EXPECT_TRUE(s.flush(now));
  SoftState again = opened();
  EXPECT_TRUE(again.room(room(2), now));
}

// Root may write any file, so it becomes somebody else for the time of this test.
struct ReadOnlyFile : SoftStateTest {
  static constexpr uid_t kNobody = 65534;
  bool was_root = ::geteuid() == 0;
  void SetUp() override {
    if (!was_root) return;
    ASSERT_EQ(::chown(folder.path().c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  void TearDown() override {
    if (was_root) {
      ASSERT_EQ(::seteuid(0), 0);
    }
  }
};

TEST_F(ReadOnlyFile, IsStillReadAndIsWrittenOnceItMayBe) {
  {
    SoftState s = opened();
    s.put(room(1), stored(1), now);
    ASSERT_TRUE(s.flush(now));
  }
  ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
  SoftState s = opened();
  EXPECT_TRUE(s.room(room(1), now));
  s.put(room(2), stored(2), now);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(s.flush(now));
    EXPECT_TRUE(s.degraded());
    EXPECT_TRUE(s.room(room(1), now)) << "a read-only file is better than none";
    pass(kRetryDelay);
  }
  EXPECT_EQ(faults.size(), 1u);
  for (const char* companion : {"", "-wal", "-shm"}) {  // SQLite makes them in the likeness of the file
    ASSERT_EQ(::chmod((path + companion).c_str(), 0600), 0) << companion;
  }
  EXPECT_TRUE(s.flush(now));
  EXPECT_EQ(recoveries.size(), 1u);
  SoftState again = opened();
  EXPECT_TRUE(again.room(room(2), now));
}

TEST_F(SoftStateTest, IsStoppedByANewerSchemaAlone) {
  opened();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version = 7", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  SoftState s = make(path);
  const auto fault = s.open(now);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, Fault::Kind::newer);
  EXPECT_EQ(files(), 1u) << "nothing was set aside";
}

TEST_F(SoftStateTest, GoesOnInMemoryWithoutItsFolderAndWritesEverythingOnceThereIsOne) {
  path = folder / "later/state.db";
  SoftState s = opened();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(s.degraded());
  s.put(room(1), stored(1), now);
  s.set_floor({3}, now);
  EXPECT_FALSE(s.flush(now));
  EXPECT_TRUE(s.room(room(1), now));
  EXPECT_EQ(s.next_flush(), now.mono + kRetryDelay);
  for (int i = 0; i < 5; ++i) {
    pass(kRetryDelay);
    EXPECT_FALSE(s.flush(now));
  }
  EXPECT_EQ(faults.size(), 1u) << "the same fault is told once";
  std::filesystem::create_directory(folder / "later");
  EXPECT_FALSE(s.flush(now)) << "not before its time";
  pass(kRetryDelay);
  EXPECT_TRUE(s.flush(now));
  EXPECT_EQ(recoveries.size(), 1u);
  EXPECT_FALSE(s.degraded());
  SoftState again = opened();
  EXPECT_TRUE(again.room(room(1), now));
  EXPECT_EQ(again.floor(now), MapVersion{3});
}

// A full disk, by a limit on the size of files: works for any user, and on every file system.
struct FullDisk : SoftStateTest {
  rlimit old{};
  void SetUp() override {
    std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  }
  void limit(rlim_t bytes) const {
    const rlimit small{bytes, old.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  void TearDown() override { ::setrlimit(RLIMIT_FSIZE, &old); }
};

TEST_F(FullDisk, LosesNothingThatWasPromisedAndCatchesUpLater) {
  SoftState s = opened();
  limit(96 * 1024);
  std::uint32_t n = 0;
  while (n < 20000) {  // until it is full
    s.put(room(n), stored(1), now);
    ++n;
    if (!s.flush(now)) break;
  }
  ASSERT_LT(n, 20000u);
  ASSERT_GT(n, 100u);
  EXPECT_TRUE(s.degraded());
  EXPECT_EQ(faults.size(), 1u);
  for (std::uint32_t i = 0; i < n; ++i) ASSERT_TRUE(s.room(room(i), now)) << i << " of " << n << ": disk or memory";
  {
    SoftState another = opened();  // as after a kill: all but the last were promised
    for (std::uint32_t i = 0; i + 1 < n; ++i) ASSERT_TRUE(another.room(room(i), now)) << i;
  }
  s.wipe(room(0), now);
  EXPECT_FALSE(s.flush(now));
  EXPECT_FALSE(s.room(room(0), now)) << "a degraded delete wipes memory";
  limit(old.rlim_cur);
  pass(kRetryDelay);
  EXPECT_TRUE(s.flush(now));
  EXPECT_EQ(recoveries.size(), 1u);
  SoftState again = opened();
  EXPECT_FALSE(again.room(room(0), now));
  for (std::uint32_t i = 1; i < n; ++i) ASSERT_TRUE(again.room(room(i), now)) << i;
}

}  // namespace
}  // namespace tandem::state
