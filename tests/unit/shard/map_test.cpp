#include "tandem/shard/map.hpp"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::shard {
namespace {

MapFault refused(std::string_view json) {
  auto result = ShardMap::parse(json);
  if (const auto* f = std::get_if<MapFault>(&result)) return *f;
  ADD_FAILURE() << "accepted " << json;
  return {};
}

ShardMap accepted(std::string_view json) {
  auto result = ShardMap::parse(json);
  if (const auto* f = std::get_if<MapFault>(&result)) throw std::runtime_error(f->message);
  return std::get<ShardMap>(result);
}

std::string one_range(std::string_view low, std::string_view high, std::string_view host = "\"a\"") {
  return R"({"version":1,"ranges":[{"low":)" + std::string(low) + R"(,"high":)" + std::string(high) + R"(,"host":)" +
         std::string(host) + "}]}";
}

TEST(ShardMap, AgreesWithEveryVector) {
  std::ifstream file(TANDEM_VECTORS "/shard_maps.json");
  const auto vectors = nlohmann::json::parse(file);
  ASSERT_GT(vectors.size(), 20u);
  for (const auto& v : vectors) {
    const std::string text = v.contains("map") ? v["map"].dump() : v["text"].get<std::string>();
    auto result = ShardMap::parse(text);
    const auto* fault = std::get_if<MapFault>(&result);
    EXPECT_EQ(v["ok"].get<bool>(), fault == nullptr) << v["name"] << (fault ? fault->message : "");
    if (fault && v.contains("kind")) {
      EXPECT_EQ(v["kind"], label(fault->kind)) << v["name"];
    }
    if (!fault && v.contains("map")) {
      EXPECT_EQ(v["map"]["version"], std::get<ShardMap>(result).version().value);
    }
  }
}

TEST(ShardMap, AnswersForEveryBucketOfItsRangesInAnyOrder) {
  const ShardMap map = accepted(
      R"({"version":5,"ranges":[{"low":60000,"high":65535,"host":"a"},{"low":10,"high":59999,"host":"nobody.invalid"},{"low":0,"high":9,"host":"b"}]})");
  EXPECT_EQ(map.host_of({0}), "b");
  EXPECT_EQ(map.host_of({9}), "b");
  EXPECT_EQ(map.host_of({10}), "nobody.invalid");
  EXPECT_EQ(map.owner_of({10}), "");
  EXPECT_EQ(map.owner_of({65535}), "a");
  EXPECT_EQ(map.hosts(), (std::vector<std::string>{"b", "nobody.invalid", "a"}));
  EXPECT_EQ(map.ranges().front().host, "b");
}

TEST(ShardMap, RefusesNumbersThatAreNotIntegers) {
  EXPECT_EQ(refused(one_range("0", "65535.0")).kind, MapFaultKind::malformed);
  EXPECT_EQ(refused(one_range("0e0", "65535")).kind, MapFaultKind::malformed);
  EXPECT_EQ(refused(one_range("\"0\"", "65535")).kind, MapFaultKind::malformed);
  EXPECT_EQ(refused(one_range("false", "65535")).where, "ranges[0].low");
  EXPECT_EQ(refused(one_range("null", "65535")).value, "null");
}

TEST(ShardMap, NamesWhereAndWhatOfEveryRefusal) {
  const MapFault host =
      refused(R"({"version":1,"ranges":[{"low":0,"high":9,"host":"a"},{"low":10,"high":65535,"host":"A.example"}]})");
  EXPECT_EQ(host.kind, MapFaultKind::invalid_host);
  EXPECT_EQ(host.where, "ranges[1].host");
  EXPECT_EQ(host.value, "A.example");
  EXPECT_NE(host.message.find("invalid_host"), std::string::npos);
  EXPECT_NE(host.message.find("A.example"), std::string::npos);

  EXPECT_EQ(refused(one_range("0", "65536")).where, "ranges[0].high");
  EXPECT_EQ(refused(one_range("0", "65536")).value, "65536");
  EXPECT_EQ(refused(one_range("-1", "65535")).value, "-1");
  EXPECT_EQ(refused(one_range("7", "3")).value, "7-3");
  EXPECT_EQ(refused(R"({"version":-4,"ranges":[]})").value, "-4");
}

TEST(ShardMap, NamesTheFirstBucketOfAGapOrOverlap) {
  EXPECT_EQ(
      refused(R"({"version":1,"ranges":[{"low":0,"high":100,"host":"a"},{"low":102,"high":65535,"host":"b"}]})").value,
      "101");
  EXPECT_EQ(
      refused(R"({"version":1,"ranges":[{"low":0,"high":200,"host":"a"},{"low":200,"high":65535,"host":"b"}]})").value,
      "200");
  EXPECT_EQ(refused(one_range("0", "65534")).value, "65535");
  EXPECT_EQ(refused(one_range("1", "65535")).value, "0");
}

TEST(ShardMap, RefusesMoreThanAMebibyteAndAcceptsExactlyOne) {
  std::string text = one_range("0", "65535");
  text += std::string(kMaxMapBytes - text.size(), ' ');
  EXPECT_EQ(accepted(text).version().value, 1u);
  EXPECT_EQ(refused(text + " ").kind, MapFaultKind::too_large);
}

TEST(ShardMap, KeepsItsFaultsPrintableAndShort) {
  const MapFault f = refused(R"({"version":1,"ranges":[{"low":0,"high":65535,"host":"\u001b[31m\n)" +
                             std::string(5000, 'x') + "\"}]}");
  EXPECT_EQ(f.kind, MapFaultKind::invalid_host);
  EXPECT_LT(f.message.size(), 700u);
  EXPECT_EQ(f.message.find('\n'), std::string::npos);
  EXPECT_EQ(f.message.find('\x1b'), std::string::npos);
}

TEST(ShardMap, KeepsItsFaultsPrintableWhateverAKeyIsCalled) {
  for (const std::string key : {"\xef\xbb\xbf", "\\u001b[31m", "k\\n"}) {
    const MapFault f = refused("{\"" + key + "\":[{\"low\":1,*}]}");
    for (const char c : f.message + f.where + f.value) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << f.message;
  }
}

TEST(ShardMap, WritesWhatItReads) {
  const ShardMap map = accepted(
      R"({"ranges":[{"low":9,"high":65535,"host":"[2001:db8::1]:8443"},{"low":0,"high":8,"host":"a"}],"version":7,"x":[]})");
  const std::string text = map.to_json();
  EXPECT_EQ(text.find("\"version\""), text.find('"'));
  const ShardMap again = accepted(text);
  EXPECT_EQ(again.ranges(), map.ranges());
  EXPECT_EQ(again.version(), map.version());
  EXPECT_EQ(again.to_json(), text);
}

TEST(ShardMap, ComparesOwnersAndNotRanges) {
  const ShardMap a = accepted(R"({"version":1,"ranges":[{"low":0,"high":65535,"host":"a"}]})");
  const ShardMap split =
      accepted(R"({"version":2,"ranges":[{"low":0,"high":9,"host":"a"},{"low":10,"high":65535,"host":"a"}]})");
  const ShardMap other =
      accepted(R"({"version":2,"ranges":[{"low":0,"high":65534,"host":"a"},{"low":65535,"high":65535,"host":"b"}]})");
  EXPECT_TRUE(a.same_owners(split));
  EXPECT_FALSE(a.same_owners(other));
}

TEST(Draft, MayLeaveTheVersionOut) {
  auto draft = Draft::parse(R"({"ranges":[{"low":0,"high":65535,"host":"a"}]})");
  ASSERT_TRUE(std::holds_alternative<Draft>(draft));
  EXPECT_FALSE(std::get<Draft>(draft).drafted_from);
  EXPECT_EQ(refused(R"({"ranges":[{"low":0,"high":65535,"host":"a"}]})").where, "version");
  auto from = Draft::parse(R"({"version":4,"ranges":[{"low":0,"high":65535,"host":"a"}]})");
  EXPECT_EQ(std::get<Draft>(from).drafted_from, MapVersion{4});
}

}  // namespace
}  // namespace tandem::shard
