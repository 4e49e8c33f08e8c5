#include "tandem/protocol/pairing_url.hpp"

#include "unit/protocol/vectors.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace tandem::protocol {
namespace {

const std::string kProto = "proto=Noise_XK_25519_ChaChaPoly_BLAKE2s";
const std::string kRs = "rs=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const std::string kDirect =
    "iterm2://pair?v=1&" + kProto + "&" + kRs + "&pid=companion&relay=https://relay.example.com";

PairingUrl good(const std::string& text) {
  auto r = parse_pairing_url(text);
  const auto* url = std::get_if<PairingUrl>(&r);
  EXPECT_TRUE(url) << text;
  return url ? *url : PairingUrl{};
}

std::string wrong(const std::string& text) {
  auto r = parse_pairing_url(text);
  const auto* fault = std::get_if<PairingUrlFault>(&r);
  EXPECT_TRUE(fault) << text;
  return fault ? fault->parameter : "";
}

TEST(PairingUrl, NamesTheRoomOfTheVectors) {
  EXPECT_EQ(good(kDirect).room().hex(), "de5613dbe578aeb70a6885a481e0252dbc4bb279bcb120235a38cda8a999d07e");
  EXPECT_EQ(good(kDirect).host(), "relay.example.com");
  for (const auto& v : test::read_vectors("rooms.json")) {
    PairingUrl url;
    const Bytes rs = test::unhex(v["rs_hex"]);
    std::copy(rs.begin(), rs.end(), url.rs.begin());
    url.pid = v["pid"];
    url.where = "https://relay.example.com:8443";
    const PairingUrl again = good(build_pairing_url(url));
    EXPECT_EQ(again.room().hex(), v["room"].get<std::string>());
    EXPECT_EQ(again.pid, url.pid);
    EXPECT_EQ(again.host(), "relay.example.com:8443");
  }
}

TEST(PairingUrl, OfTheResolvedModeCarriesTheMapsUrl) {
  PairingUrl url;
  url.resolved = true;
  url.pid = "a&b=c #%";
  url.where = "https://resolver.example.com/maps/shardmap.json?a=1&b=2";
  const std::string text = build_pairing_url(url);
  EXPECT_TRUE(text.starts_with("iterm2://pair?v=2&proto=Noise_XK_25519_ChaChaPoly_BLAKE2s&rs=")) << text;
  const PairingUrl again = good(text);
  EXPECT_TRUE(again.resolved);
  EXPECT_EQ(again.where, url.where);
  EXPECT_EQ(again.pid, url.pid);
}

TEST(PairingUrl, PaddingOfRsIsTolerated) {
  EXPECT_EQ(
      good("iterm2://pair?v=1&" + kProto + "&" + kRs + "=&pid=companion&relay=https%3A%2F%2Frelay.example.com").room(),
      good(kDirect).room());
}

TEST(PairingUrl, AFaultNamesTheParameter) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kDirect;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(wrong("https://pair?v=1"), "url");
  EXPECT_EQ(wrong("iterm2://other?v=1"), "url");
  EXPECT_EQ(wrong(with("v=1", "v=3")), "v");
  EXPECT_EQ(wrong(with("v=1&", "")), "v");
  EXPECT_EQ(wrong(with("v=1", "v=1&v=1")), "v");
  EXPECT_EQ(wrong(with("Noise_XK", "Noise_IK")), "proto");
  EXPECT_EQ(wrong(with(kProto + "&", "")), "proto");
  EXPECT_EQ(wrong(with("rs=AAEC", "rs=AAE")), "rs");
  EXPECT_EQ(wrong(with("rs=AAEC", "rs=AA!C")), "rs");
  EXPECT_EQ(wrong(with(kRs + "&", "")), "rs");
  EXPECT_EQ(wrong(with("&pid=companion", "")), "pid");
  EXPECT_EQ(wrong(with("pid=companion", "pid=%ff")), "pid");
  EXPECT_EQ(wrong(with("pid=companion", "pid=%4")), "pid");
  EXPECT_EQ(wrong(with("https://relay.example.com", "http://relay.example.com")), "relay");
  EXPECT_EQ(wrong(with("https://relay.example.com", "https://relay.example.com/path")), "relay");
  EXPECT_EQ(wrong(with("https://relay.example.com", "https://")), "relay");
  EXPECT_EQ(wrong(with("&relay=https://relay.example.com", "")), "relay");
  EXPECT_EQ(wrong(with("relay=https://relay.example.com", "resolver=https://relay.example.com/m")), "resolver");
  EXPECT_EQ(wrong(with("v=1", "v=2")), "relay");
}

}  // namespace
}  // namespace tandem::protocol
