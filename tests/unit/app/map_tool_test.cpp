// The parts of the publishing tool that need neither store nor network: what it reads from hosts, and how it runs an
// upload.
#include "tandem/app/map_fleet.hpp"
#include "tandem/app/map_gunzip.hpp"
#include "tandem/app/map_http.hpp"
#include "tandem/app/map_observed.hpp"
#include "tandem/app/map_upload.hpp"

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

TEST(HostMetrics, CountsRoomsThatAMoveWouldDisturb) {
  const auto m = parse_metrics(
      "# HELP tandem_rooms x\n# TYPE tandem_rooms gauge\ntandem_rooms{state=\"spliced\"} "
      "3\ntandem_rooms{state=\"mac_only\"} 4\r\n"
      "tandem_rooms{state=\"phone_only\"} 5.0\ntandem_rooms{state=\"pending\"} 1000\ntandem_rooms{state=\"empty\"} "
      "500\ntandem_shard_map_version 1.2e+01\n"
      "tandem_shard_map_version_extra 99\ntandem_draining_rooms 2\n");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->rooms, 12u);
  EXPECT_EQ(m->version, MapVersion{12});
  EXPECT_EQ(m->draining_rooms, 2u);
}

TEST(HostMetrics, TakesNothingFromWhatIsNoRelay) {
  EXPECT_FALSE(parse_metrics(""));
  EXPECT_FALSE(parse_metrics("tandem_shard_map_version 3\n"));
  EXPECT_FALSE(parse_metrics("tandem_rooms{state=\"spliced\"} x\ntandem_shard_map_version NaN\n"));
  EXPECT_FALSE(parse_metrics("<html>tandem_rooms{ 1</html>"));
}

TEST(HostStatus, ReadsWhatItKnowsAndMissesNothingElse) {
  const auto s = parse_status(
      R"({"hostname":"a","map":{"version":8,"age_seconds":0.4},"owned":{"buckets":6,"ranges":[[0,5]]},"rooms":{"spliced":1,"mac_only":2},
          "draining":{"buckets":1,"rooms":3},"last_fetch_error":{"cause":"parse","seconds":31.0}})");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->version, MapVersion{8});
  EXPECT_EQ(s->rooms, 3u);
  EXPECT_EQ(s->draining_rooms, 3u);
  EXPECT_EQ(s->fetch_error, "parse");
  ASSERT_TRUE(s->ranges);
  EXPECT_EQ(s->ranges->front().second, 5u);
  EXPECT_FALSE(parse_status("[]"));
  const auto bare = parse_status("{\"map\":5,\"owned\":[],\"draining\":null}");
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->buckets);
}

TEST(UploadCommand, IsAListOfStrings) {
  EXPECT_EQ(std::get<0>(parse_upload_command(R"(["a","{file}"])")), (std::vector<std::string>{"a", "{file}"}));
  for (const char* bad : {"", "x", "[]", "{}", "[1]", "[\"a\",null]", "[\"\"]", "[\"a\"] x"})
    EXPECT_TRUE(std::holds_alternative<std::string>(parse_upload_command(bad))) << bad;
}

TEST(Upload, RunsWithoutAShellAndReportsHowItEnded) {
  const auto run = [](std::vector<std::string> command, Duration timeout = seconds(20)) {
    return run_upload(command, "/tmp/a map.json", {7}, timeout);
  };
  EXPECT_FALSE(run({"/bin/sh", "-c", "test \"$1\" = 'x/tmp/a map.json;$(id)' && test \"$TANDEM_VERSION\" = 7", "sh",
                    "x{file};$(id)"}));
  EXPECT_EQ(run({"/bin/sh", "-c", "exit 5"}), "ended with status 5");
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -TERM $$"}), "was ended by signal 15");
  EXPECT_NE(run({"no-such-command-here"})->find("no-such-command-here"), std::string::npos);
  EXPECT_NE(run({"/bin/sh", "-c", "sleep 30"}, milliseconds(50))->find("took more than"), std::string::npos);
}

TEST(HttpPlace, ReadsAddressesWithAPort) {
  EXPECT_EQ(parse_http_place("127.0.0.1:0")->port, 0);
  EXPECT_TRUE(parse_http_place("localhost:9470")->ip.is_loopback());
  EXPECT_TRUE(parse_http_place("[::1]:9470")->ip.is_loopback());
  EXPECT_FALSE(parse_http_place("[::]:443")->ip.is_loopback());
  for (const char* bad : {"", "127.0.0.1", ":80", "relay.example:80", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:"})
    EXPECT_FALSE(parse_http_place(bad)) << bad;
}

TEST(Gunzip, UndoesWhatItKnowsAndRefusesTheRest) {
  // printf hello | gzip -n
  const std::string hello(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00", 25);
  EXPECT_EQ(gunzip(hello, 100), "hello");
  EXPECT_EQ(gunzip(hello, 5), "hello");
  EXPECT_FALSE(gunzip(hello, 4));
  EXPECT_FALSE(gunzip(hello.substr(0, 13), 100));
  EXPECT_FALSE(gunzip("{\"version\":1,\"ranges\":[]}", 100));
}

}  // namespace
}  // namespace tandem::app
