#include "tandem/admin/status.hpp"

#include "sample_status.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::admin {
namespace {

using nlohmann::json;
using test::sample_status;

TEST(StatusJson, HasTheNamesThatToolsRelyOn) {
  const json s = json::parse(status_json(sample_status()));
  EXPECT_EQ(s["hostname"], "relay1.test");
  EXPECT_EQ(s["mode"], "resolved");
  EXPECT_TRUE(s["version"].is_string());
  EXPECT_EQ(s["uptime_seconds"], 3.1);
  EXPECT_EQ(s["map"], (json{{"version", 8}, {"floor", 8}, {"age_seconds", 0.4}}));
  EXPECT_EQ(s["owned"], (json{{"buckets", 32768}, {"ranges", {{0, 32767}}}}));
  EXPECT_EQ(s["draining"]["buckets"], 2);
  EXPECT_EQ(s["draining"]["rooms"], 2);
  EXPECT_EQ(s["draining"]["next_eviction_seconds"], 0.1);
  EXPECT_EQ(s["draining"]["expected_end_seconds"], 0.3);
  EXPECT_EQ(s["rooms"], (json{{"spliced", 12}, {"mac_only", 5}, {"phone_only", 0}, {"pending", 0}}));
  EXPECT_EQ(s["sockets"], (json{{"handshake", 0}, {"pending", 0}, {"admitted", 29}}));
  EXPECT_EQ(s["throughput"]["bytes_per_second"], 1234567);
  EXPECT_EQ(s["last_fetch_error"], nullptr);
  EXPECT_EQ(s["certificate"]["expires_in_seconds"], 86400 * 40);
}

TEST(StatusJson, ListsManyOwnedRangesAsPairs) {
  auto status = sample_status();
  status.relay.owned_ranges = {{Bucket{1}, Bucket{1}}, {Bucket{7}, Bucket{65535}}};
  EXPECT_EQ(json::parse(status_json(status))["owned"]["ranges"], json::parse("[[1,1],[7,65535]]"));
  status.relay.owned_ranges.clear();
  EXPECT_EQ(json::parse(status_json(status))["owned"]["ranges"], json::array());
}

TEST(StatusJson, TellsTheFetchErrorWhileItLastsAndAfterUnderAnotherName) {
  auto status = sample_status();
  status.fetch_failing = FetchFault{"parse", "gap_or_overlap", "101", "ranges[1]: 101 has no owner", 3, seconds(31)};
  json s = json::parse(status_json(status));
  EXPECT_EQ(s["last_fetch_error"]["cause"], "parse");
  EXPECT_EQ(s["last_fetch_error"]["kind"], "gap_or_overlap");
  EXPECT_EQ(s["last_fetch_error"]["value"], "101");
  EXPECT_EQ(s["last_fetch_error"]["polls"], 3);
  EXPECT_EQ(s["last_fetch_error"]["seconds"], 31.0);
  status.fetch_recovered = std::exchange(status.fetch_failing, std::nullopt);
  s = json::parse(status_json(status));
  EXPECT_EQ(s["last_fetch_error"], nullptr);
  EXPECT_EQ(s["recovered_fetch_error"]["kind"], "gap_or_overlap");
}

TEST(StatusJson, SurvivesAnOffendingValueThatIsNoUtf8) {
  auto status = sample_status();
  status.fetch_failing = FetchFault{"parse", "invalid_host", "\xff\xfe", "x", 1, seconds(0)};
  EXPECT_TRUE(json::parse(status_json(status))["last_fetch_error"]["value"].is_string());
}

TEST(StatusJson, IsOneLine) {
  const std::string text = status_json(sample_status());
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST(ExplainJson, SaysWhyAJoinWouldBeRefused) {
  relay::Explanation e;
  e.tag = "1a2b3c4d";
  e.bucket = Bucket{57888};
  e.owner = "relay2.test";
  e.state = "none";
  e.mac_refusals = {"misdirected"};
  e.quota_resets_in = seconds(90);
  const json s = json::parse(explain_json(e, sample_status()));
  EXPECT_EQ(s["tag"], "1a2b3c4d");
  EXPECT_EQ(s["bucket"], 57888);
  EXPECT_EQ(s["owner"], "relay2.test");
  EXPECT_EQ(s["map"]["version"], 8);
  EXPECT_EQ(s["owned_buckets"], sample_status().relay.owned_buckets);
  EXPECT_TRUE(s.contains("last_fetch_error"));
  EXPECT_EQ(s["quota_resets_in_seconds"], 90);
  EXPECT_EQ(s["mac_refusals"], json::array({"misdirected"}));
  EXPECT_EQ(s["phone_refusals"], json::array());
  e.owner.clear();
  EXPECT_EQ(json::parse(explain_json(e, sample_status()))["owner"], nullptr);
}

}  // namespace
}  // namespace tandem::admin
