#include "tandem/config/load.hpp"

#include "tandem/config/reload.hpp"
#include "tandem/config/units.hpp"

#include <cstdlib>
#include <fstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::config {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;

Config valid(const std::string& text, const std::string& dir = {}) {
  auto out = parse(text, dir);
  if (const auto* error = std::get_if<ConfigError>(&out)) {
    ADD_FAILURE() << error->one_line();
    return {};
  }
  return std::get<Config>(out);
}

std::string minimal(const std::string& more = {}) {
  return R"({"hostname": "relay1.example.com", "tls": {"certificate": "c.pem", "private_key": "/k.pem"})" + more + "}";
}

TEST(Load, EveryKeyButHostnameAndTlsHasItsDefault) {
  const Config c = valid(minimal());
  EXPECT_EQ(c.hostname, "relay1.example.com");
  ASSERT_EQ(c.listen.size(), 2u);
  EXPECT_EQ(c.listen[0].text(), "0.0.0.0:443");
  EXPECT_EQ(c.listen[1].text(), "[::]:443");
  ASSERT_TRUE(c.tls);
  EXPECT_EQ(c.tls->min_version, TlsVersion::tls_1_2);
  EXPECT_FALSE(c.resolved());
  EXPECT_TRUE(c.attest.required);
  EXPECT_FALSE(c.attest.app_id);
  EXPECT_EQ(c.limits.room_bytes_per_day, ByteCount{8ull << 30});
  EXPECT_EQ(c.limits.message_bytes, ByteCount{256 << 10});
  EXPECT_EQ(c.limits.sockets, 200000u);
  EXPECT_FALSE(c.limits.box_egress_per_month);
  EXPECT_EQ(c.timeouts.rendezvous, seconds(2));
  EXPECT_EQ(c.timeouts.established_idle, hours(24 * 30));
  EXPECT_EQ(c.state_path, "/var/lib/tandem/state.db");
  EXPECT_EQ(c.admin_listen.text(), "127.0.0.1:9464");
  EXPECT_EQ(to_string(c.log.level), "info");
}

TEST(Load, NullTurnsALimitOff) {
  const Config c = valid(minimal(R"(, "limits": {"room_bytes_per_day": null, "message_bytes": null,
      "messages_per_second": null, "upgrades_per_minute": null, "attests_per_minute": null, "sockets_per_client": null,
      "sockets": null, "rooms": null})"));
  EXPECT_FALSE(c.limits.room_bytes_per_day || c.limits.message_bytes || c.limits.messages_per_second);
  EXPECT_FALSE(c.limits.upgrades_per_minute || c.limits.attests_per_minute || c.limits.sockets_per_client);
  EXPECT_FALSE(c.limits.sockets || c.limits.rooms);
}

TEST(Load, ReadsCommentsAndEveryKindOfValue) {
  const Config c = valid(minimal(R"(, // a comment with "quotes" and a trailing {
    "$schema": "x", "listen": ["localhost:1", "[::1]:2"], /* and
    another */ "proxy": {"trust": "proxy_protocol", "hops": 3, "from": ["10.1.2.3/8", "2001:db8::1"]},
    "shard_map": {"url": "https://resolver.example.com/m//x.json", "eviction_rate": 0.5, "ca_file": "ca.pem"},
    "limits": {"box_egress_per_month": {"limit": "20TiB", "hard": true}, "box_bytes_per_second": "1.5MiB"},
    "timeouts": {"rendezvous": "0s", "stall": "1500ms"}, "state": {"path": null}, "log": {"level": "warn", "format": "json"})"),
                         "/etc/tandem");
  EXPECT_EQ(c.listen[0].text(), "127.0.0.1:1");
  EXPECT_EQ(c.proxy.trust, ProxyTrust::proxy_protocol);
  EXPECT_EQ(c.proxy.from[0].text(), "10.0.0.0/8");
  EXPECT_EQ(c.proxy.from[1].text(), "2001:db8::1/128");
  ASSERT_TRUE(c.resolved());
  EXPECT_EQ(c.shard_map->url, "https://resolver.example.com/m//x.json");
  EXPECT_EQ(c.shard_map->eviction_rate, 0.5);
  EXPECT_EQ(c.shard_map->ca_file, "/etc/tandem/ca.pem");
  EXPECT_EQ(c.shard_map->poll_interval, seconds(10));
  EXPECT_EQ(c.tls->certificate, "/etc/tandem/c.pem");
  EXPECT_EQ(c.tls->private_key, "/k.pem");
  EXPECT_EQ(c.limits.box_egress_per_month->limit, ByteCount{20ull << 40});
  EXPECT_TRUE(c.limits.box_egress_per_month->hard);
  EXPECT_EQ(c.limits.box_bytes_per_second, ByteCount{3 << 19});
  EXPECT_EQ(c.timeouts.rendezvous, Duration::zero());
  EXPECT_EQ(c.timeouts.stall, milliseconds(1500));
  EXPECT_FALSE(c.state_path);
  EXPECT_EQ(c.log.format, LogFormat::json);
}

TEST(Load, AcceptsTlsOffOnLoopbackAndANullMap) {
  const Config c =
      valid(R"({"hostname": "[::1]:8443", "tls": "off", "listen": ["[::1]:80", "127.9.9.9:80"], "shard_map": null})");
  EXPECT_FALSE(c.tls);
  EXPECT_FALSE(c.shard_map);
}

TEST(Load, AcceptsMapsOnLoopbackAndInFiles) {
  for (const char* url : {"http://127.0.0.1:9/m", "http://localhost/m", "http://[::1]:80/m", "file:///srv/m.json",
                          "file://localhost/m", "https://Resolver.Example.com/m?x=1", "HTTPS://a.example/"}) {
    EXPECT_TRUE(valid(minimal(std::string(R"(, "shard_map": {"url": ")") + url + "\"}")).resolved()) << url;
  }
}

TEST(Load, AFileThatCannotBeReadSaysWhich) {
  const auto missing = load("/nonexistent/relay.jsonc"), folder = load("/tmp");
  EXPECT_THAT(std::get<ConfigError>(missing).one_line(),
              HasSubstr("/nonexistent/relay.jsonc: cannot be read: No such file"));
  EXPECT_THAT(std::get<ConfigError>(folder).one_line(), HasSubstr("/tmp: is a directory"));
}

TEST(Load, RelativePathsCountFromTheFilesFolder) {
  char dir[] = "/tmp/tandem-config-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string file = std::string(dir) + "/relay.jsonc";
  std::ofstream(file) << minimal();
  const auto loaded = load(file);
  ASSERT_TRUE(std::holds_alternative<Config>(loaded));
  EXPECT_EQ(std::get<Config>(loaded).tls->certificate, std::string(dir) + "/c.pem");
  EXPECT_EQ(std::get<Config>(loaded).file, file);
  std::ofstream(file) << "{}";
  EXPECT_THAT(std::get<ConfigError>(load(file)).one_line(), testing::StartsWith(file + ":"));
  unlink(file.c_str());
  rmdir(dir);
}

TEST(Reload, SaysWhatAppliesNowAndWhatWaits) {
  const std::string map =
      R"(, "shard_map": {"url": "https://a.example/m", "eviction_rate": RATE, "poll_interval": "POLL"})";
  const auto with = [&](const char* rate, const char* poll, const char* more) {
    std::string text = map;
    text.replace(text.find("RATE"), 4, rate);
    text.replace(text.find("POLL"), 4, poll);
    return valid(minimal(text + more));
  };
  const Config old = with("10", "10s", "");
  const Config wanted = with("5", "9s", R"(, "listen": ["127.0.0.1:1"], "limits": {"rooms": 7}, "state": {"path": "/x"},
      "admin": {"listen": "127.0.0.1:1234"}, "log": {"level": "debug"}, "attest": {"required": false}, "proxy": {"trust": "cloudflare"})");
  const ReloadPlan plan = plan_reload(old, wanted);
  EXPECT_THAT(plan.now,
              ElementsAre("proxy.trust", "shard_map.eviction_rate", "attest.required", "limits.rooms", "log.level"));
  EXPECT_THAT(plan.restart, ElementsAre("listen", "shard_map.poll_interval", "state.path", "admin.listen"));
  EXPECT_EQ(plan.effective.listen, old.listen);
  EXPECT_EQ(plan.effective.shard_map->poll_interval, seconds(10));
  EXPECT_EQ(plan.effective.shard_map->eviction_rate, 5);
  EXPECT_EQ(plan.effective.state_path, old.state_path);
  EXPECT_EQ(plan.effective.admin_listen, old.admin_listen);
  EXPECT_EQ(plan.effective.limits.rooms, 7u);
  EXPECT_FALSE(plan.effective.attest.required);
}

TEST(Reload, AModeThatChangesWaitsForARestart) {
  const Config direct = valid(R"({"hostname": "a.example", "tls": "off", "listen": ["127.0.0.1:1"]})");
  const Config fleet = valid(minimal(R"(, "listen": ["127.0.0.1:1"], "shard_map": {"url": "https://a.example/m"})"));
  const ReloadPlan plan = plan_reload(direct, fleet);
  EXPECT_THAT(plan.restart, ElementsAre("tls", "shard_map", "hostname"));
  EXPECT_FALSE(plan.effective.tls);
  EXPECT_FALSE(plan.effective.shard_map);
  EXPECT_EQ(plan.effective.hostname, "a.example");
}

TEST(Reload, TheSameConfigurationInOtherWordsChangesNothing) {
  const ReloadPlan plan = plan_reload(valid(minimal(R"(, "timeouts": {"stall": "60s"})")),
                                      valid(minimal(R"(, "timeouts": {"stall": "1m"})")));
  EXPECT_TRUE(plan.now.empty());
  EXPECT_TRUE(plan.restart.empty());
}

TEST(Units, DurationsAndSizesAreANumberAndAUnit) {
  EXPECT_EQ(parse_duration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse_duration("1.5h").value(), std::chrono::minutes(90));
  EXPECT_EQ(parse_duration("30d").value(), hours(720));
  EXPECT_EQ(parse_duration("0s").value(), Duration::zero());
  EXPECT_EQ(parse_size("7B").value(), ByteCount{7});
  EXPECT_EQ(parse_size("0.5KiB").value(), ByteCount{512});
  EXPECT_EQ(parse_size("1048576TiB").value(), kMaxSize);
  for (const char* bad : {"", "5", "s", "5 s", " 5s", "5s ", "-5s", "+5s", "1e3s", "5S", "5sec", ".5s", "5.s", "1.2.3s",
                          "0x5s", "5,5s"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
  for (const char* bad :
       {"", "5", "KiB", "5KB", "5kib", "5 KiB", "5K", "1e3B", "-1B", "9999999999999999999999999999999999TiB"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(Units, AreWrittenInTheLargestExactUnit) {
  for (const char* text : {"500ms", "90s", "2m", "1d", "0s", "1h"})
    EXPECT_EQ(format_duration(parse_duration(text).value()), text);
  for (const char* text : {"7B", "64KiB", "8GiB", "0B", "1025KiB"})
    EXPECT_EQ(format_size(parse_size(text).value()), text);
  EXPECT_EQ(describe_duration(hours(49)), "2 d 1 h");
  EXPECT_EQ(describe_duration(seconds(61)), "1 min 1 s");
  EXPECT_EQ(describe_size(3.2 * 1024 * 1024 * 1024), "3.2 GiB");
}

TEST(Address, KnowsLoopbackAndRanges) {
  EXPECT_TRUE(IpAddress::parse("127.1.2.3").value().is_loopback());
  EXPECT_TRUE(IpAddress::parse("::1").value().is_loopback());
  EXPECT_FALSE(IpAddress::parse("128.0.0.1").value().is_loopback());
  EXPECT_EQ(IpAddress::parse("::ffff:10.0.0.1").value().text(), "10.0.0.1");
  const Cidr ten = Cidr::parse("10.0.0.0/9").value();
  EXPECT_TRUE(ten.contains(IpAddress::parse("10.127.255.255").value()));
  EXPECT_FALSE(ten.contains(IpAddress::parse("10.128.0.0").value()));
  EXPECT_FALSE(ten.contains(IpAddress::parse("::1").value()));
  EXPECT_TRUE(Cidr::parse("0.0.0.0/0").value().contains(IpAddress::parse("203.0.113.9").value()));
  EXPECT_TRUE(Cidr::parse("::ffff:10.0.0.0/104").value().contains(IpAddress::parse("10.9.9.9").value()));
  EXPECT_TRUE(Cidr::parse("2001:db8::/33").value().contains(IpAddress::parse("2001:db8:7fff::1").value()));
  EXPECT_FALSE(Cidr::parse("2001:db8::/33").value().contains(IpAddress::parse("2001:db8:8000::1").value()));
  for (const char* bad :
       {"", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/-1", "10.0.0.0/8/8", "::ffff:10.0.0.0/8"}) {
    EXPECT_FALSE(Cidr::parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace tandem::config
