#include "tandem/net/client_address.hpp"

#include "tandem/net/http_head.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

using Trust = ProxySettings::Trust;

Address address(std::string_view text) { return Address::parse(text).value(); }

ProxySettings proxy(Trust trust, std::uint32_t hops = 1) {
  return {trust, hops, {AddressBlock::parse("127.0.0.0/8").value(), AddressBlock::parse("::1/128").value()}};
}

Address client(const std::string& lines, const ProxySettings& settings, std::string_view socket = "127.0.0.1") {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
  const auto parsed = parse_head(text);
  return client_of(std::get<RequestHead>(parsed), address(socket), settings);
}

TEST(Address, ReadsBareLiteralsOnly) {
  EXPECT_EQ(address("::ffff:10.0.0.1"), address("10.0.0.1"));
  EXPECT_TRUE(address("::ffff:10.0.0.1").is_v4());
  for (const char* bad :
       {"", "10.0.0.1:80", "[::1]", "10.0.0.256", "10.0.0", " 10.0.0.1", "fe80::1%eth0", "localhost", "010.0.0.1x"})
    EXPECT_FALSE(Address::parse(bad).has_value()) << bad;
  EXPECT_FALSE(Address::parse(std::string_view("10.0.0.1\0", 9)).has_value());
}

TEST(Address, KeysIpv6ByItsSlash64) {
  EXPECT_EQ(address("2001:db8:1:2::1").key(), address("2001:db8:1:2:ffff::9").key());
  EXPECT_NE(address("2001:db8:1:2::1").key(), address("2001:db8:1:3::1").key());
  EXPECT_NE(address("10.0.0.1").key(), address("10.0.0.2").key());
  EXPECT_EQ(address("::ffff:10.0.0.1").key(), address("10.0.0.1").key());
}

TEST(AddressBlock, ContainsWhatItsPrefixSays) {
  const auto contains = [](std::string_view block, std::string_view a) {
    return AddressBlock::parse(block).value().contains(address(a));
  };
  EXPECT_TRUE(contains("127.0.0.0/8", "127.255.0.1"));
  EXPECT_TRUE(contains("127.0.0.0/8", "::ffff:127.0.0.1"));
  EXPECT_FALSE(contains("127.0.0.0/8", "128.0.0.1"));
  EXPECT_TRUE(contains("10.1.2.3", "10.1.2.3"));
  EXPECT_FALSE(contains("10.1.2.3", "10.1.2.2"));
  EXPECT_TRUE(contains("10.64.0.0/10", "10.127.0.1"));
  EXPECT_FALSE(contains("10.64.0.0/10", "10.128.0.1"));
  EXPECT_TRUE(contains("::/0", "10.0.0.1"));
  EXPECT_TRUE(contains("2001:db8::/32", "2001:db8:ffff::1"));
  EXPECT_FALSE(contains("::1/128", "::2"));
  for (const char* bad :
       {"10.0.0.0/33", "::/129", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/8x", "/8", "10.0.0.0/-1", "10.0.0.0/08 "})
    EXPECT_FALSE(AddressBlock::parse(bad).has_value()) << bad;
}

TEST(ClientOf, TakesTheSocketWhereNobodyIsTrusted) {
  EXPECT_EQ(client("X-Forwarded-For: 1.2.3.4\r\n", proxy(Trust::none)), address("127.0.0.1"));
  EXPECT_EQ(client("X-Forwarded-For: 1.2.3.4\r\n", proxy(Trust::forwarded_for), "8.8.8.8"), address("8.8.8.8"));
  EXPECT_EQ(client("CF-Connecting-IP: 1.2.3.4\r\n", proxy(Trust::forwarded_for)), address("127.0.0.1"));
}

TEST(ClientOf, CountsHopsFromTheRightOverAllLines) {
  const std::string lines = "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nOther: x\r\nx-forwarded-for: 3.3.3.3,4.4.4.4\r\n";
  EXPECT_EQ(client(lines, proxy(Trust::forwarded_for, 1)), address("4.4.4.4"));
  EXPECT_EQ(client(lines, proxy(Trust::forwarded_for, 2)), address("3.3.3.3"));
  EXPECT_EQ(client(lines, proxy(Trust::forwarded_for, 3)), address("2.2.2.2"));
  EXPECT_EQ(client(lines, proxy(Trust::forwarded_for, 4)), address("1.1.1.1"));
  EXPECT_EQ(client(lines, proxy(Trust::forwarded_for, 5)), address("4.4.4.4"))
      << "a chain shorter than the hops: its right-most entry";
  EXPECT_EQ(client("", proxy(Trust::forwarded_for)), address("127.0.0.1"));
  EXPECT_EQ(client("X-Forwarded-For: 1.1.1.1, unknown\r\n", proxy(Trust::forwarded_for)), address("127.0.0.1"));
  EXPECT_EQ(client("X-Forwarded-For: 1.1.1.1,\r\n", proxy(Trust::forwarded_for)), address("127.0.0.1"));
  EXPECT_EQ(client("X-Forwarded-For: 2001:db8::5\r\n", proxy(Trust::forwarded_for), "::1"), address("2001:db8::5"));
}

TEST(ClientOf, BelievesCloudflareOnce) {
  EXPECT_EQ(client("CF-Connecting-IP: 1.2.3.4\r\n", proxy(Trust::cloudflare)), address("1.2.3.4"));
  EXPECT_EQ(client("CF-Connecting-IP: 1.2.3.4\r\nCF-Connecting-IP: 1.2.3.5\r\n", proxy(Trust::cloudflare)),
            address("127.0.0.1"));
  EXPECT_EQ(client("CF-Connecting-IP: nonsense\r\n", proxy(Trust::cloudflare)), address("127.0.0.1"));
}

std::string read_header(std::string_view in) {
  const auto parsed = parse_proxy_header(in);
  if (std::holds_alternative<ProxyNeedMore>(parsed)) return "more";
  if (std::holds_alternative<ProxyBroken>(parsed)) return "broken";
  const auto& header = std::get<ProxyHeader>(parsed);
  return std::to_string(header.size) + (header.client ? header.client->is_v4() ? " v4" : " v6" : " socket");
}

TEST(ProxyHeader, ReadsVersionOne) {
  const std::string line = "PROXY TCP4 1.2.3.4 5.6.7.8 1000 443\r\n";
  EXPECT_EQ(read_header(line + "\x16\x03"), std::to_string(line.size()) + " v4");
  for (std::size_t n = 0; n < line.size(); ++n) EXPECT_EQ(read_header(line.substr(0, n)), "more") << n;
  EXPECT_EQ(read_header("PROXY TCP6 2001:db8::1 ::1 1 2\r\n"), "32 v6");
  EXPECT_EQ(read_header("PROXY UNKNOWN\r\n"), "15 socket");
  EXPECT_EQ(read_header("PROXY UNKNOWN anything at all\r\n"), "31 socket");
}

TEST(ProxyHeader, RefusesBrokenVersionOne) {
  for (const char* bad :
       {"GET / HTTP/1.1\r\n", "\x16\x03\x01", "PROXY TCP4 1.2.3.4 5.6.7.8 1000\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1000 443 9\r\n", "PROXY TCP4 ::1 5.6.7.8 1000 443\r\n",
        "PROXY TCP6 1.2.3.4 5.6.7.8 1000 443\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 65536 443\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 01 443\r\n", "PROXY TCP4  1.2.3.4 5.6.7.8 1 443\r\n",
        "PROXY TCP5 1.2.3.4 5.6.7.8 1 443\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 443\n", "PROXY UNKNOWN \n x\r\n",
        "proxy TCP4", "PROXY TCP4 1.2.3.4 5.6.7.8 1 +2\r\n", "PROXY UNKNOWNX\r\n"})
    EXPECT_EQ(read_header(bad), "broken") << bad;
  EXPECT_EQ(read_header("PROXY UNKNOWN " + std::string(200, 'x')), "broken") << "longer than a line may be";
}

std::string version_2(unsigned version_command, unsigned family_protocol, const std::string& rest,
                      std::size_t length = SIZE_MAX) {
  const std::size_t n = length == SIZE_MAX ? rest.size() : length;
  std::string out("\r\n\r\n\0\r\nQUIT\n", 12);
  out.push_back(static_cast<char>(version_command));
  out.push_back(static_cast<char>(family_protocol));
  out.push_back(static_cast<char>(n >> 8));
  out.push_back(static_cast<char>(n & 0xff));
  return out + rest;
}

TEST(ProxyHeader, ReadsVersionTwo) {
  const std::string four = version_2(0x21, 0x11, std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x03\xe8\x01\xbb", 12));
  EXPECT_EQ(read_header(four), "28 v4");
  for (std::size_t n = 0; n < four.size(); ++n) EXPECT_EQ(read_header(four.substr(0, n)), "more") << n;
  EXPECT_EQ(read_header(version_2(0x21, 0x21, std::string(36, '\x20'))), "52 v6");
  EXPECT_EQ(read_header(version_2(0x21, 0x11, std::string(12 + 20, '\x01'))), "48 v4")
      << "type-length-values behind the addresses";
  EXPECT_EQ(read_header(version_2(0x20, 0x00, "")), "16 socket") << "LOCAL";
  EXPECT_EQ(read_header(version_2(0x20, 0x11, std::string(12, 'x'))), "28 socket");
  EXPECT_EQ(read_header(version_2(0x21, 0x00, "")), "16 socket") << "an unspecified family";
  EXPECT_EQ(read_header(version_2(0x21, 0x31, std::string(216, 'u'))), "232 socket");
}

TEST(ProxyHeader, RefusesBrokenVersionTwo) {
  EXPECT_EQ(read_header(version_2(0x11, 0x11, std::string(12, 'x'))), "broken") << "another version";
  EXPECT_EQ(read_header(version_2(0x22, 0x11, std::string(12, 'x'))), "broken") << "another command";
  EXPECT_EQ(read_header(version_2(0x21, 0x41, std::string(12, 'x'))), "broken") << "another family";
  EXPECT_EQ(read_header(version_2(0x21, 0x13, std::string(12, 'x'))), "broken") << "another protocol";
  EXPECT_EQ(read_header(version_2(0x21, 0x11, std::string(11, 'x'))), "broken") << "too short for its addresses";
  EXPECT_EQ(read_header(version_2(0x21, 0x11, "", 60000)), "broken") << "longer than anyone needs";
  EXPECT_EQ(read_header(std::string("\r\n\r\n\0\r\nQUIT\r", 12)), "broken");
}

}  // namespace
}  // namespace tandem::net
