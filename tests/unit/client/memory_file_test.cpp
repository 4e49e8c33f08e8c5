#include "tandem/client/memory_file.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

namespace fs = std::filesystem;

class MemoryFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tandem-memory-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = (folder_ / "room.json").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  Memory loaded_from(const std::string& text) {
    std::ofstream(path_) << text;
    return load_memory(path_);
  }
  fs::path folder_;
  std::string path_;
};

TEST_F(MemoryFile, KeepsFloorAndHostAcrossRuns) {
  for (const Memory& memory :
       {Memory{MapVersion{37}, "relay1.test:8443"}, Memory{MapVersion{(1ULL << 53) - 1}, ""}, Memory{}}) {
    ASSERT_FALSE(save_memory(path_, memory));
    EXPECT_EQ(load_memory(path_), memory);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}), 1)
      << "no half-written file is left";
}

TEST_F(MemoryFile, RemembersNothingFromWhatItCannotUnderstand) {
  for (const char* text :
       {"", "nonsense", "[]", "{\"version\":-1}", "{\"version\":1.5}", "{\"version\":9007199254740992}",
        "{\"host\":\"Not A Host\"}", "{\"host\":\"nobody.invalid\"}", "{\"version\":1,\"version\":2}"})
    EXPECT_EQ(loaded_from(text), Memory{}) << text;
  EXPECT_EQ(load_memory((folder_ / "none").string()), Memory{});
}

TEST_F(MemoryFile, ReportsWhereItCannotWriteAndLeavesTheOldFile) {
  ASSERT_FALSE(save_memory(path_, {MapVersion{1}, "a.test"}));
  EXPECT_TRUE(save_memory((folder_ / "none" / "room.json").string(), {MapVersion{2}, "b.test"}));
  EXPECT_EQ(load_memory(path_).floor, MapVersion{1});
}

}  // namespace
}  // namespace tandem::client
