// The judge of the fleet's scenarios must find what it is there to find.
#include "tandem/app/fleet_audit.hpp"

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

constexpr char kStarting[] = R"({"level":"info","message":"starting","version":"0.1.0"})";

std::string adopted(int version) { return R"({"message":"map adopted","version":)" + std::to_string(version) + "}"; }
std::string admitted(const std::string& tag) { return R"({"message":"admitted","room":")" + tag + R"("})"; }

shard::ShardMap split_at(std::uint64_t version, std::uint16_t first_of_b, const char* b = "b.test") {
  auto made = shard::ShardMap::make(
      {version}, {{0, static_cast<std::uint16_t>(first_of_b - 1), "a.test"}, {first_of_b, 65535, b}});
  return std::get<shard::ShardMap>(std::move(made));
}

class Audit : public ::testing::Test {
 protected:
  FleetFindings of(const std::vector<std::string>& lines) {
    FleetAudit audit("a.test", "");
    FleetFindings findings;
    for (const std::string& line : lines) audit.take(line, maps, rooms, findings);
    return findings;
  }

  FleetMaps maps{{1, split_at(1, 100)}, {2, split_at(2, 50)}, {3, split_at(3, 50, "nobody.invalid")}};
  FleetRooms rooms{{"0000000a", Bucket{10}}, {"0000000b", Bucket{70}}};
};

TEST_F(Audit, PassesWhatTheMapOfThatMomentAllows) {
  const auto found = of({kStarting, adopted(1), admitted("0000000a"), admitted("0000000b"), adopted(2),
                         admitted("0000000a"), "no JSON", admitted("ffffffff")});
  EXPECT_EQ(found.admissions, 3u) << "a room of nobody's is not judged";
  EXPECT_TRUE(found.faults.empty());
}

TEST_F(Audit, FindsAnAdmissionByAHostThatHasLostTheRoom) {
  const auto found = of({kStarting, adopted(1), adopted(2), admitted("0000000b")});
  ASSERT_EQ(found.faults.size(), 1u);
  EXPECT_EQ(found.faults[0], "a.test admitted room 0000000b of bucket 70, which version 2 gives to b.test");
}

TEST_F(Audit, FindsAnAdmissionOfWhatNobodyOwns) {
  EXPECT_EQ(of({kStarting, adopted(3), admitted("0000000b")}).faults.size(), 1u);
}

TEST_F(Audit, FindsAnAdmissionWithoutAMap) {
  EXPECT_EQ(of({kStarting, admitted("0000000a")}).faults.size(), 1u);
  EXPECT_EQ(of({kStarting, adopted(1), kStarting, admitted("0000000a")}).faults.size(), 1u)
      << "the map of an earlier process is not this one's";
}

TEST_F(Audit, FindsARollback) {
  EXPECT_EQ(of({kStarting, adopted(2), adopted(1)}).faults.size(), 1u);
  EXPECT_EQ(of({kStarting, adopted(2), adopted(2)}).faults.size(), 1u);
  EXPECT_EQ(of({kStarting, adopted(2), kStarting, adopted(1)}).faults.size(), 1u) << "over a restart";
  EXPECT_TRUE(of({kStarting, adopted(2), kStarting, adopted(2)}).faults.empty());
}

TEST_F(Audit, NotesWhenARoomWasEvictedOnceForBothOfItsSockets) {
  const auto closed = [](const char* room, const char* role, int code, const char* time) {
    return std::string(R"({"time":"2026-11-30T01:42:)") + time + R"(Z","message":"closed","room":")" + room +
           R"(","role":")" + role + R"(","code":)" + std::to_string(code) + "}";
  };
  const auto found = of({closed("0000000a", "mac", 4421, "42.374"), closed("0000000a", "phone", 4421, "42.390"),
                         closed("0000000b", "none", 4421, "43.000"), closed("0000000b", "mac", 1001, "44.000")});
  ASSERT_EQ(found.evictions.size(), 1u);
  ASSERT_EQ(found.evictions.at("a.test").size(), 1u) << "a socket that was not admitted is no room";
  EXPECT_EQ(found.evictions.at("a.test").at("0000000a"), std::chrono::milliseconds(6162374));
}

TEST(Seconds, AreCountedWhereverTheyBegin) {
  using std::chrono::milliseconds;
  EXPECT_EQ(most_in_a_second({}), 0u);
  EXPECT_EQ(most_in_a_second({milliseconds(2500), milliseconds(900), milliseconds(1899), milliseconds(1900)}), 3u);
}

TEST_F(Audit, FindsAVersionThatNobodyPublished) { EXPECT_EQ(of({kStarting, adopted(9)}).faults.size(), 1u); }

}  // namespace
}  // namespace tandem::app
