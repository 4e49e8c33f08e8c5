// Wrong configurations, each with the one line an operator sees. The table is the specification of the messages.
#include "tandem/config/load.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::config {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A valid configuration, one key a line, with `patch` (RFC 7396, but null is kept as a value) laid over it.
json base() {
  return {{"hostname", "relay1.example.com"},
          {"listen", {"127.0.0.1:8443"}},
          {"tls", {{"certificate", "c.pem"}, {"private_key", "k.pem"}}}};
}

void lay_over(json& to, const json& patch) {
  for (const auto& [key, value] : patch.items()) {
    if (value.is_object() && to.contains(key) && to[key].is_object())
      lay_over(to[key], value);
    else
      to[key] = value;
  }
}

ConfigError refused(const std::string& text) {
  auto out = parse(text);
  const auto* error = std::get_if<ConfigError>(&out);
  if (error == nullptr) {
    ADD_FAILURE() << "accepted: " << text;
    return {};
  }
  const std::string line = error->one_line();
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_LE(line.size(), 500u) << line;
  return *error;
}

struct Wrong {
  const char* patch;
  const char* path;               // what the line must blame
  std::vector<const char*> says;  // and what it must say
};

const std::vector<Wrong> kWrong = {
    // ---- unknown keys: the nearest valid one
    {R"({"limits": {"sokets": 5}})", "limits.sokets", {"unknown", "limits.sockets"}},
    {R"({"limit": {"sockets": 5}})", "limit", {"unknown", "limits"}},
    {R"({"rooms": 5})", "rooms", {"unknown", "limits.rooms"}},
    {R"({"hostnam": "x"})", "hostnam", {"hostname"}},
    {R"({"timeouts": {"keep_alive": "5s"}})", "timeouts.keep_alive", {"timeouts.keepalive"}},
    {R"({"tls": {"cert": "x.pem"}})", "tls.cert", {"unknown", "valid ones here: certificate, private_key"}},
    {R"({"shard_map": {"url": "https://a.example/m", "interval": "5s"}})", "shard_map.interval", {"unknown"}},
    {R"({"limits.rooms": 5})", "limits.rooms", {"unknown", "write it as \"limits\": { \"rooms\": ... }"}},
    {R"({"log": {"levle": "info"}})", "log.levle", {"log.level"}},
    // ---- wrong types
    {R"({"limits": {"sockets": "many"}})", "limits.sockets", {"whole number above zero", "\"many\""}},
    {R"({"limits": {"rooms": true}})", "limits.rooms", {"whole number", "true"}},
    {R"({"limits": {"splice_buffer": null}})", "limits.splice_buffer", {"size", "null"}},
    {R"({"timeouts": {"admission": null}})", "timeouts.admission", {"duration", "null"}},
    {R"({"limits": {"messages_per_second": [1]}})", "limits.messages_per_second", {"found a list"}},
    {R"({"limits": {"message_bytes": 262144}})", "limits.message_bytes", {"a size in a string", "KiB", "262144"}},
    {R"({"timeouts": {"admission": 15}})", "timeouts.admission", {"a duration in a string", "\"30s\""}},
    {R"({"timeouts": []})", "timeouts", {"expected an object"}},
    {R"({"log": "info"})", "log", {"expected an object", "\"info\""}},
    {R"({"hostname": 5})", "hostname", {"bare host name"}},
    {R"({"listen": "127.0.0.1:4433"})", "listen", {"list of addresses"}},
    {R"({"listen": []})", "listen", {"list of addresses", "empty"}},
    {R"({"listen": [443]})", "listen[0]", {"address and port"}},
    {R"({"attest": {"required": "yes"}})", "attest.required", {"true or false"}},
    {R"({"attest": {"required": null}})", "attest.required", {"true or false"}},
    {R"({"state": {"path": 7}})", "state.path", {"path", "or null"}},
    {R"({"state": {"path": ""}})", "state.path", {"empty"}},
    {R"({"proxy": {"hops": "1"}})", "proxy.hops", {"whole number"}},
    {R"({"proxy": {"from": "127.0.0.1"}})", "proxy.from", {"list of address ranges"}},
    {R"({"tls": "on"})", "tls", {"\"off\"", "\"on\""}},
    {R"({"tls": null})", "tls", {"\"off\"", "null"}},
    {R"({"shard_map": "https://a.example/m"})", "shard_map", {"expected an object"}},
    {R"({"$schema": 1})", "$schema", {"string"}},
    // ---- values out of bounds
    {R"({"limits": {"sockets": 0}})", "limits.sockets", {"above zero"}},
    {R"({"limits": {"sockets": -1}})", "limits.sockets", {"above zero"}},
    {R"({"limits": {"sockets": 1.5}})", "limits.sockets", {"whole"}},
    {R"({"limits": {"sockets": 4294967296}})", "limits.sockets", {"at most 4294967295"}},
    {R"({"limits": {"message_bytes": "0KiB"}})", "limits.message_bytes", {"above zero"}},
    {R"({"limits": {"message_bytes": "256"}})", "limits.message_bytes", {"its unit"}},
    {R"({"limits": {"message_bytes": "256 KiB"}})", "limits.message_bytes", {"its unit"}},
    {R"({"limits": {"message_bytes": "256KB"}})", "limits.message_bytes", {"B KiB MiB GiB TiB"}},
    {R"({"limits": {"message_bytes": "KiB"}})", "limits.message_bytes", {"a number and its unit"}},
    {R"({"limits": {"message_bytes": "99999999TiB"}})", "limits.message_bytes", {"at most"}},
    {R"({"limits": {"splice_buffer": "1GiB"}})", "limits.splice_buffer", {"from 4KiB to 64MiB"}},
    {R"({"limits": {"socket_buffer": "1B"}})", "limits.socket_buffer", {"from 4KiB to 1GiB"}},
    {R"({"timeouts": {"stall": "0s"}})", "timeouts.stall", {"above zero"}},
    {R"({"timeouts": {"stall": "-3s"}})", "timeouts.stall", {"ms s m h d"}},
    {R"({"timeouts": {"stall": "30 sec"}})", "timeouts.stall", {"ms s m h d"}},
    {R"({"timeouts": {"stall": "9999999d"}})", "timeouts.stall", {"at most"}},
    {R"({"shed": {"memory_pressure": 101}})", "shed.memory_pressure", {"0 to 100"}},
    {R"({"shed": {"resume_below": -1}})", "shed.resume_below", {"0 to 100"}},
    {R"({"shard_map": {"url": "https://a.example/m", "eviction_rate": 0}})", "shard_map.eviction_rate", {"above zero"}},
    {R"({"shard_map": {"url": "https://a.example/m", "fetch_attempts": 0}})",
     "shard_map.fetch_attempts",
     {"above zero"}},
    // ---- wrong choices list the valid ones
    {R"({"log": {"level": "verbose"}})", "log.level", {"\"debug\", \"info\", \"warn\" or \"error\""}},
    {R"({"log": {"format": "xml"}})", "log.format", {"\"text\" or \"json\""}},
    {R"({"proxy": {"trust": "x_forwarded_for"}})", "proxy.trust", {"forwarded_for", "cloudflare", "proxy_protocol"}},
    {R"({"tls": {"min_version": "1.1"}})", "tls.min_version", {"\"1.2\" or \"1.3\""}},
    {R"({"attest": {"environment": "prod"}})", "attest.environment", {"production", "development"}},
    // ---- names, addresses, URLs
    {R"({"hostname": "Relay1.Example.com"})", "hostname", {"did you mean \"relay1.example.com\""}},
    {R"({"hostname": "https://relay1.example.com/"})", "hostname", {"did you mean \"relay1.example.com\""}},
    {R"({"hostname": "relay1.example.com:443"})", "hostname", {"without \":443\""}},
    {R"({"hostname": "relay1.example.com."})", "hostname", {"did you mean \"relay1.example.com\""}},
    {R"({"hostname": "relay 1"})", "hostname", {"bare"}},
    {R"({"hostname": "[2001:0db8::1]:8443"})", "hostname", {"shortest form, 2001:db8::1"}},
    {R"({"hostname": "[0:0:0:0:0:0:0:1]"})", "hostname", {"shortest form, ::1"}},
    {R"({"listen": ["0.0.0.0"]})", "listen[0]", {"address and port"}},
    {R"({"listen": ["127.0.0.1:1", "relay.example.com:443"]})", "listen[1]", {"literal"}},
    {R"({"listen": ["127.0.0.1:0"]})", "listen[0]", {"1 to 65535"}},
    {R"({"listen": ["127.0.0.1:70000"]})", "listen[0]", {"1 to 65535"}},
    {R"({"listen": ["::1:443"]})", "listen[0]", {"[::]:443"}},
    {R"({"proxy": {"from": ["10.0.0.0/33"]}})", "proxy.from[0]", {"address range"}},
    {R"({"proxy": {"from": ["::1", "proxies"]}})", "proxy.from[1]", {"address range"}},
    {R"({"shard_map": {"url": "http://resolver.example.com/m"}})", "shard_map.url", {"use https"}},
    {R"({"shard_map": {"url": "ftp://resolver.example.com/m"}})", "shard_map.url", {"https"}},
    {R"({"shard_map": {"url": "resolver.example.com/m"}})", "shard_map.url", {"whole URL"}},
    {R"({"shard_map": {"url": "file://srv/map.json"}})", "shard_map.url", {"absolute path"}},
    {R"({"shard_map": {"url": "https://u:p@a.example/m"}})", "shard_map.url", {"without user name"}},
    // ---- missing
    {R"({"shard_map": {}})", "shard_map.url", {"missing"}},
    {R"({"limits": {"box_egress_per_month": {"hard": true}}})", "limits.box_egress_per_month", {"limit is missing"}},
    {R"({"limits": {"box_egress_per_month": {"limit": "1TiB", "hrd": true}}})",
     "limits.box_egress_per_month.hrd",
     {"limit and hard"}},
    {R"({"limits": {"box_egress_per_month": {"limit": "1TiB", "hard": 1}}})",
     "limits.box_egress_per_month.hard",
     {"true or false"}},
    {R"({"limits": {"box_egress_per_month": {"limit": 5}}})", "limits.box_egress_per_month.limit", {"size"}},
    {R"({"limits": {"box_egress_per_month": 5}})", "limits.box_egress_per_month", {"size"}},
    // ---- impossible together
    {R"({"shard_map": {"url": "https://a.example/m", "drain_delay": "19s"}})",
     "shard_map.drain_delay",
     {"twice poll_interval", "20s"}},
    {R"({"shard_map": {"url": "https://a.example/m", "poll_interval": "1m"}})", "shard_map.drain_delay", {"2m"}},
    {R"({"tls": "off", "listen": ["0.0.0.0:80"]})", "tls", {"loopback", "0.0.0.0:80"}},
    {R"({"admin": {"listen": "0.0.0.0:9464"}})", "admin.listen", {"must be loopback", "127.0.0.1:9464"}},
    {R"({"admin": {"listen": "[::]:9464"}})", "admin.listen", {"must be loopback"}},
    {R"({"admin": {"listen": "127.0.0.1:8443"}})", "admin.listen", {"already taken"}},
    {R"({"listen": ["127.0.0.1:1", "127.0.0.1:1"]})", "listen[1]", {"already taken"}},
    {R"({"listen": ["0.0.0.0:1", "127.0.0.1:1"]})", "listen[1]", {"already taken"}},
    {R"({"shed": {"memory_pressure": 5}})", "shed.resume_below", {"lower than memory_pressure (5)", "10"}},
};

TEST(WrongConfig, EachGivesOneLineThatNamesTheKeyAndTheCure) {
  for (const Wrong& wrong : kWrong) {
    json config = base();
    lay_over(config, json::parse(wrong.patch));
    const ConfigError error = refused(config.dump(1));
    EXPECT_EQ(error.path, wrong.path) << error.one_line();
    for (const char* part : wrong.says) EXPECT_THAT(error.one_line(), HasSubstr(part)) << wrong.patch;
  }
}

TEST(WrongConfig, NamesTheLineOfTheKey) {
  for (const Wrong& wrong : kWrong) {
    const json patch = json::parse(wrong.patch);
    if (patch.size() != 1 || !patch.begin()->is_object() || patch.begin()->size() != 1) continue;
    json config = base();
    lay_over(config, patch);
    const std::string text = config.dump(1), key = "\"" + patch.begin()->begin().key() + "\":";
    const ConfigError error = refused(text);
    if (error.path.find(patch.begin()->begin().key()) == std::string::npos ||
        error.message.find("missing") != std::string::npos)
      continue;
    const auto expected =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(key)), '\n');
    EXPECT_GE(error.line, static_cast<std::size_t>(expected)) << error.one_line();
    EXPECT_LE(error.line, static_cast<std::size_t>(expected) + 2) << error.one_line();
  }
}

TEST(WrongConfig, TheRequiredKeysAreAskedFor) {
  EXPECT_THAT(refused(R"({"tls": "off", "listen": ["127.0.0.1:1"]})").one_line(), HasSubstr("hostname: is missing"));
  EXPECT_THAT(refused(R"({"hostname": "a.example"})").one_line(), HasSubstr("tls: is missing"));
  const ConfigError error = refused("{\"hostname\": \"a.example\",\n \"tls\": {\"certificate\": \"c\"}}");
  EXPECT_EQ(error.path, "tls.private_key");
  EXPECT_EQ(error.line, 2u);
}

TEST(WrongConfig, DuplicatesSayDuplicateWithPathAndLine) {
  const ConfigError error = refused("{\"limits\": {\"rooms\": 5,\n  \"sockets\": 7,\n  \"rooms\": 6}}");
  EXPECT_EQ(error.path, "limits.rooms");
  EXPECT_EQ(error.line, 3u);
  EXPECT_THAT(error.one_line(), HasSubstr("duplicate"));
}

TEST(WrongConfig, ATrailingCommaSaysCommaAlsoBehindAComment) {
  for (const char* text :
       {"{\"log\": {},\n}", "{\"log\": {}, // last\n}", "{\"listen\": [\"127.0.0.1:1\", /* more? */ ]}"}) {
    EXPECT_THAT(refused(text).one_line(), HasSubstr("comma")) << text;
  }
}

TEST(WrongConfig, ATopLevelThatIsNoObjectSaysObject) {
  for (const char* text : {"[]", "\"hostname\"", "7", "null", "", " \n", "true"}) {
    EXPECT_THAT(refused(text).one_line(), HasSubstr("object")) << text;
  }
}

TEST(WrongConfig, BrokenSyntaxNamesTheLine) {
  EXPECT_EQ(refused("{\n\"hostname\": \"a\"\n\"tls\": \"off\"}").line, 3u);
  EXPECT_EQ(refused("{\n\"hostname\": 'a'}").line, 2u);
  const std::pair<std::string, const char*> cures[] = {
      {"{\"hostname\": 'a'}", "double quotes"},
      {"{'hostname': \"a\"}", "double quotes"},
      {"{\"hostname\": relay1}", "double quotes"},
      {"{\"hostname\": \"a\" \"tls\": \"off\"}", "missing comma"},
      {"{\"hostname\" \"a\"}", "colon"},
      {"{\"hostname\": \"a\nb\"}", "ends on the line"},
      {"{\"hostname\": \"a\"", "closing }"},
      {"# old style\n{}", "comments begin with //"},
      {"{} /* never closed", "write */"},
      {"\xEF\xBB\xBF{}", "plain UTF-8"},
      {"{\xE2\x80\x9Chostname\xE2\x80\x9D: \"a\"}", "quotes must be plain"},
      {"{\"hostname\": \"\xFF\"}", "UTF-8"},
  };
  for (const auto& [text, cure] : cures) EXPECT_THAT(refused(text).one_line(), HasSubstr(cure)) << text;
  refused("{\"hostname\": \"a\"");
  refused("{} {}");
  refused("/* never closed");
  refused(std::string("{\"hostname\": \"a\0\"}", 18));
  refused("\xEF\xBB\xBF{}");
  refused(std::string(50, '[') + std::string(50, ']'));
  refused("{\"hostname\": " + std::string(2 * 1024 * 1024, ' ') + "1}");
}

TEST(WrongConfig, WhatIsQuotedFromTheFileStaysOnOneLine) {
  const ConfigError error = refused(R"({"limits": {"so\u0001\"kets\n": 1}})");
  EXPECT_EQ(error.one_line().find('\n'), std::string::npos);
  refused(R"({")" + std::string(5000, 'k') + R"(": 1})");
  refused("{\"hostname\": \"" + std::string(5000, 'k') + "\", \"tls\": \"off\"}");
  EXPECT_THAT(refused(R"({"hostname": "a\nb", "tls": "off"})").one_line(), HasSubstr("control character"));
}

TEST(WrongConfig, TheFirstFaultInTheFileComesFirstAndTheRestIsCounted) {
  const ConfigError error = refused("{\"zzz\": 1,\n\"hostname\": 5,\n\"aaa\": 2}");
  EXPECT_EQ(error.line, 1u);
  EXPECT_EQ(error.path, "zzz");
  EXPECT_EQ(error.others, 3u);  // hostname, aaa, tls missing
  EXPECT_THAT(error.one_line(), HasSubstr("3 more faults"));
}

}  // namespace
}  // namespace tandem::config
