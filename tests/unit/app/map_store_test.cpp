// The store with real files and real locks; killed between any two steps of a publish.
#include "tandem/app/map_store.hpp"

#include "tandem/app/map_error.hpp"
#include "tandem/app/map_files.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

using shard::ShardMap;

ShardMap map_of(std::uint64_t version, const std::string& host) {
  return std::get<ShardMap>(ShardMap::make({version}, {{0, 65535, host}}));
}

std::string code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const MapError& e) {
    return e.code();
  }
  return "";
}

class MapStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tandem-store-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    top_ = name;
    store_.emplace(top_ / "store");
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  void publish(MapStore& store, std::uint64_t version, const std::string& host) {
    const StoreLock lock = store.lock(seconds(5), "test");
    store.commit(lock, map_of(version, host), {{version}, "2026-07-12T10:00:00Z", "ann", "edit", "why", 7});
  }

  std::filesystem::path top_;
  std::optional<MapStore> store_;
};

TEST_F(MapStoreTest, SaysThatThereIsNoMap) {
  EXPECT_FALSE(store_->has_map());
  EXPECT_EQ(code_of([&] { (void)store_->current(); }), "no_map");
  EXPECT_FALSE(std::filesystem::exists(store_->folder())) << "reading must not make folders";
}

TEST_F(MapStoreTest, ReadsWhatWasCommittedAndRemembersWhoWhenAndWhy) {
  publish(*store_, 1, "a");
  publish(*store_, 2, "b");
  EXPECT_EQ(store_->current().version(), MapVersion{2});
  EXPECT_EQ(store_->text(), map_of(2, "b").to_json());
  EXPECT_EQ(store_->version({1}, store_->current())->host_of({0}), "a");
  EXPECT_FALSE(store_->version({3}, store_->current()));
  const auto entry = store_->entry({1});
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->by, "ann");
  EXPECT_EQ(entry->message, "why");
  EXPECT_EQ(entry->moved_buckets, 7u);
  EXPECT_EQ(store_->history({2}, 1).front().version, MapVersion{2});
}

TEST_F(MapStoreTest, RefusesAMapThatSomebodyBroke) {
  publish(*store_, 1, "a");
  write_and_sync(store_->map_path(), "{\"version\":1,\"ranges\":[]}");
  EXPECT_EQ(code_of([&] { (void)store_->current(); }), "invalid_map");
}

TEST_F(MapStoreTest, HoldsTheMapWholeAndTheHistoryTrueWhereverAWriterIsKilled) {
  publish(*store_, 1, "a");
  std::uint64_t version = 1;
  for (const std::string step : {"entry written", "entry in place", "map written", "map in place"}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      store_->after_step = [&](const char* done) {
        if (done == step) ::kill(::getpid(), SIGKILL);
      };
      publish(*store_, version + 1, "killed.example");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << step;

    if (step == "map in place") ++version;
    EXPECT_EQ(store_->current().version().value, version) << step;
    for (const HistoryEntry& e : store_->history({version}, 100)) EXPECT_LE(e.version.value, version) << step;
    // The next writer is not kept out, and overwrites what was never published.
    publish(*store_, version + 1, "next.example");
    ++version;
    EXPECT_EQ(store_->current().host_of({0}), "next.example") << step;
    EXPECT_EQ(store_->version({version}, store_->current())->host_of({0}), "next.example");
    EXPECT_EQ(store_->history({version}, 100).size(), version) << step;
  }
}

TEST_F(MapStoreTest, LetsOneWriterInAndTellsTheOtherWhoItIs) {
  publish(*store_, 1, "a");
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const StoreLock lock = store_->lock(seconds(5), "bob@box");
    char c = 'x';
    if (::write(ready[1], &c, 1) != 1 || ::read(go[0], &c, 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  std::string message;
  const auto begun = std::chrono::steady_clock::now();
  try {
    (void)store_->lock(milliseconds(100), "eve");
    FAIL() << "two writers at once";
  } catch (const MapError& e) {
    EXPECT_EQ(e.code(), "locked");
    message = e.what();
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(100));
  EXPECT_NE(message.find("bob@box"), std::string::npos) << message;
  EXPECT_EQ(store_->current().version(), MapVersion{1}) << "readers take no lock";
  ASSERT_EQ(::write(go[1], &c, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  (void)store_->lock(seconds(5), "eve");
}

TEST_F(MapStoreTest, KeepsEveryDraftUnderANameOfItsOwn) {
  const auto one = store_->keep_draft("1"), two = store_->keep_draft("2");
  EXPECT_NE(one, two);
  EXPECT_EQ(read_whole(one, 10), "1");
  EXPECT_EQ(read_whole(two, 10), "2");
}

TEST_F(MapStoreTest, RemembersTheUploadCommandAndTheLastUpload) {
  publish(*store_, 1, "a");
  EXPECT_TRUE(store_->upload_command().empty());
  EXPECT_FALSE(store_->uploaded());
  const StoreLock lock = store_->lock(seconds(5), "test");
  store_->set_upload_command(lock, {"cp", "{file}", "a b\"c"});
  store_->set_uploaded(lock, {41});
  EXPECT_EQ(store_->upload_command(), (std::vector<std::string>{"cp", "{file}", "a b\"c"}));
  EXPECT_EQ(store_->uploaded(), MapVersion{41});
  write_and_sync(store_->folder() / ".tandem" / "store.json", "{\"upload\":\"cp\"}");
  EXPECT_EQ(code_of([&] { (void)store_->upload_command(); }), "store_failed");
}

TEST_F(MapStoreTest, RefusesToWriteAMapThatRelaysWouldRefuse) {
  publish(*store_, 1, "a");
  std::vector<shard::Range> ranges;
  for (std::uint32_t b = 0; b < kBucketCount; ++b)
    ranges.push_back({static_cast<std::uint16_t>(b), static_cast<std::uint16_t>(b), b % 2 ? "a.example" : "b.example"});
  const ShardMap fine = std::get<ShardMap>(ShardMap::make({2}, ranges));
  const StoreLock lock = store_->lock(seconds(5), "test");
  EXPECT_EQ(code_of([&] { store_->commit(lock, fine, {{2}, "", "", "", "", 0}); }), "invalid_map");
  EXPECT_EQ(store_->current().version(), MapVersion{1});
}

TEST(UtcText, ReadsWhatItWrites) {
  const WallTime t{std::chrono::seconds{1783850400}};
  EXPECT_EQ(utc_text(t), "2026-07-12T10:00:00Z");
  EXPECT_EQ(parse_utc("2026-07-12T10:00:00Z"), t);
  for (const char* bad : {"", "2026-07-12", "2026-13-12T10:00:00Z", "2026-07-12T10:00:00Z "})
    EXPECT_FALSE(parse_utc(bad)) << bad;
}

}  // namespace
}  // namespace tandem::app
