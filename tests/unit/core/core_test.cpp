#include "tandem/core/authority.hpp"
#include "tandem/core/base64.hpp"
#include "tandem/core/close_reason.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/random.hpp"
#include "tandem/core/siphash.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(RoomNames, AreExactlySixtyFourLowercaseHexDigits) {
  const std::string good = "611c035897cf71eebc08e531616a3470f666cd001532e1bd4957dd762efae220";
  const auto room = RoomName::parse(good);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->hex(), good);
  EXPECT_EQ(room->bucket().value, 57888);
  std::string upper = good;
  upper[5] = 'C';
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", upper, good.substr(0, 63) + "g", good.substr(0, 63) + " "})
    EXPECT_FALSE(RoomName::parse(bad)) << bad;
}

TEST(RoomNames, AreNamedInLogsByTheHashOfTheirHexText) {
  const std::string name(64, 'a');
  EXPECT_EQ(RoomName::parse(name)->tag(), hex_encode(ByteView(sha256(bytes_of(name))).first(4)));
  EXPECT_EQ(RoomName::parse(name)->tag(), "ffe054fe");
}

TEST(Base64, RoundTripsEveryLength) {
  SeededRandom random(7);
  for (std::size_t n = 0; n < 70; ++n) {
    Bytes data(n);
    random.fill(data);
    EXPECT_EQ(base64_decode(base64_encode(data)).value(), data);
    EXPECT_EQ(base64url_decode(base64url_encode(data)).value(), data);
    EXPECT_EQ(hex_decode(hex_encode(data)).value(), data);
  }
}

TEST(Base64, RefusesEveryLooseSpelling) {
  EXPECT_EQ(base64_encode(bytes_of("ab")), "YWI=");
  for (const char* bad : {"YWI", "YWI==", "YWI=YWI=", "YW I=", "YWI=\n", " YWI=", "YWJ=", "Y===", "=", "====", "YWI-",
                          "YWI_", "Y=I=", "YW=I", "AA=A"})
    EXPECT_FALSE(base64_decode(bad)) << bad;
  EXPECT_FALSE(base64_decode(std::string_view("YWI=\0", 5)));
  EXPECT_TRUE(base64_decode(""));
}

TEST(Authority, LocalhostIsThisMachineAndWhatOnlyLooksLikeItIsNot) {
  for (const char* host : {"localhost", "a.localhost"}) EXPECT_TRUE(is_localhost(host)) << host;
  for (const char* host : {"", "notlocalhost", "localhost.example.com", "127.0.0.1"})
    EXPECT_FALSE(is_localhost(host)) << host;
}

TEST(Authorities, OfEveryKindAreTakenApart) {
  const auto name = Authority::parse("relay1.example.com:8443").value();
  EXPECT_EQ(name.host(), "relay1.example.com");
  EXPECT_EQ(name.port(), 8443);
  EXPECT_EQ(name.origin(), "https://relay1.example.com:8443");
  const auto six = Authority::parse("[2001:db8::1]:8443").value();
  EXPECT_EQ(six.kind(), Authority::Kind::ipv6);
  EXPECT_EQ(six.host(), "2001:db8::1");
  EXPECT_EQ(Authority::parse("203.0.113.7").value().kind(), Authority::Kind::ipv4);
  EXPECT_TRUE(Authority::parse("nobody.invalid").value().owns_nothing());
  EXPECT_TRUE(Authority::parse("invalid").value().owns_nothing());
  EXPECT_FALSE(Authority::parse("notinvalid").value().owns_nothing());
}

TEST(Authorities, OutOfFormAreRefused) {
  for (const char* bad : {"",
                          "https://relay1",
                          "relay1/x",
                          "user@relay1",
                          "relay1?x",
                          "relay1#x",
                          "relay1 x",
                          "Relay1.example.com",
                          "relay1.example.com.",
                          "a..b",
                          ".a",
                          "-a",
                          "a-",
                          "a:",
                          "a:0",
                          "a:65536",
                          "a:08",
                          "a:80:80",
                          "[::1",
                          "::1",
                          "[::1]x",
                          "[1::2::3]",
                          "[::G]",
                          "[::A]",
                          "1.2.3",
                          "1.2.3.256",
                          "01.2.3.4",
                          "a:b",
                          "\xc3\xa9.com",
                          "[12345::]"})
    EXPECT_FALSE(Authority::parse(bad)) << bad;
  EXPECT_FALSE(Authority::parse(std::string(64, 'a') + ".com"));
}

TEST(Nearest, FindsATypoAndNotAStranger) {
  const std::vector<std::string> keys{"sockets", "rooms", "listen"};
  EXPECT_EQ(nearest("sokets", keys), "sockets");
  EXPECT_EQ(nearest("completely_other", keys), "");
}

TEST(Sha256, MatchesTheStandardVector) {
  EXPECT_EQ(hex_encode(sha256(bytes_of("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hkdf, MatchesRfc5869FirstCase) {
  const Bytes ikm(22, 0x0b);
  const Bytes salt = hex_decode("000102030405060708090a0b0c").value();
  const Bytes info = hex_decode("f0f1f2f3f4f5f6f7f8f9").value();
  EXPECT_EQ(hex_encode(hkdf_sha256(ikm, salt, info)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST(Ed25519, SignsAndVerifiesAndRefusesAChangedBit) {
  Ed25519Seed seed{};
  seed[3] = 9;
  const auto key = ed25519_public_key(seed);
  Ed25519Signature signature = ed25519_sign(seed, bytes_of("hello"));
  EXPECT_TRUE(ed25519_verify(key, bytes_of("hello"), signature));
  EXPECT_FALSE(ed25519_verify(key, bytes_of("hellp"), signature));
  EXPECT_FALSE(ed25519_verify(key, bytes_of("hello"), ByteView(signature).first(63)));
  signature[10] ^= 1;
  EXPECT_FALSE(ed25519_verify(key, bytes_of("hello"), signature));
}

TEST(Ed25519, KeysOffTheCurveOrOfLowOrderAreRefused) {
  Ed25519Seed seed{};
  EXPECT_TRUE(ed25519_is_valid_key(ed25519_public_key(seed)));
  Ed25519PublicKey identity{};
  identity[0] = 1;
  EXPECT_FALSE(ed25519_is_valid_key(identity));
  EXPECT_FALSE(ed25519_is_valid_key(Ed25519PublicKey{}));
  Ed25519PublicKey noncanonical;
  noncanonical.fill(0xff);
  EXPECT_FALSE(ed25519_is_valid_key(noncanonical));
}

TEST(SipHash, MatchesTheReferenceVector) {
  Bytes data(15);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(siphash24({0x0706050403020100u, 0x0f0e0d0c0b0a0908u}, data), 0xa129ca6149be45e5u);
}

TEST(SeededRandom, ReplaysAndStaysInBounds) {
  SeededRandom a(1), b(1), c(2);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(a.below(7));
  EXPECT_EQ(seen.size(), 7u);
  for (int i = 0; i < 200; ++i) {
    const double u = a.unit();
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
  }
}

TEST(CloseReasons, CarryTheTextsAndCodesOfTheWire) {
  EXPECT_EQ(close_code(CloseReason::displaced), 1000);
  EXPECT_EQ(close_text(CloseReason::pairing_cycle_cap), "pairing cycle cap");
  EXPECT_EQ(close_code(CloseReason::reshard), 4421);
  EXPECT_EQ(close_code(CloseReason::frame_too_large), 1009);
  EXPECT_EQ(close_text(CloseReason::slow_consumer), "slow consumer");
  EXPECT_EQ(close_code(CloseReason::reset), 1006);
  EXPECT_EQ(label(CloseReason::reset), "reset");
  EXPECT_EQ(reject_status(RejectReason::misdirected), 421);
  EXPECT_EQ(reject_text(RejectReason::too_large), "payload too large");
}

}  // namespace
}  // namespace tandem
