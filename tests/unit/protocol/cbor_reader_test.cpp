#include "tandem/protocol/cbor_reader.hpp"

#include "unit/protocol/attest_mint.hpp"

#include <gtest/gtest.h>

namespace tandem::protocol {
namespace {

using Kind = CborDocument::Kind;

Bytes hex(std::string_view text) { return hex_decode(text).value(); }

Error refusal(const Bytes& input, CborLimits limits = {}) {
  const auto document = CborDocument::parse(input, limits);
  EXPECT_FALSE(document) << "accepted " << hex_encode(input);
  return document ? Error{} : static_cast<Error>(document.error().value());
}

TEST(CborReader, ReadsEveryKindItAccepts) {
  // {"a": [1, -1, "x", h'0203', true, null, 1000000], "b": {}}
  const Bytes input =
      hex("a26161"
          "8701206178420203f5f61a000f4240"
          "6162a0");
  const auto document = CborDocument::parse(input);
  ASSERT_TRUE(document) << document.error().message();
  const auto* array = document->find(document->root(), "a", Kind::array);
  ASSERT_NE(array, nullptr);
  const auto entries = document->entries(*array);
  ASSERT_EQ(entries.size(), 7u);
  EXPECT_EQ(entries[0]->kind, Kind::unsigned_integer);
  EXPECT_EQ(entries[0]->number, 1u);
  EXPECT_EQ(entries[1]->kind, Kind::negative_integer);
  EXPECT_EQ(entries[1]->number, 0u);
  EXPECT_EQ(entries[2]->kind, Kind::text);
  EXPECT_EQ(entries[3]->kind, Kind::bytes);
  EXPECT_EQ(Bytes(entries[3]->data.begin(), entries[3]->data.end()), hex("0203"));
  EXPECT_EQ(entries[4]->kind, Kind::boolean);
  EXPECT_EQ(entries[5]->kind, Kind::null);
  EXPECT_EQ(entries[6]->number, 1000000u);
  EXPECT_NE(document->find(document->root(), "b", Kind::map), nullptr);
}

TEST(CborReader, FindsKeysOfTheMapItIsAskedAboutAndNotOfInnerOnes) {
  const Bytes input =
      hex("a26161a1616b0161628161"
          "6b");  // {"a": {"k": 1}, "b": ["k"]}
  const auto document = CborDocument::parse(input);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->find(document->root(), "k", Kind::unsigned_integer), nullptr);
  const auto* inner = document->find(document->root(), "a", Kind::map);
  ASSERT_NE(inner, nullptr);
  EXPECT_NE(document->find(*inner, "k", Kind::unsigned_integer), nullptr);
  EXPECT_EQ(document->find(*inner, "k", Kind::text), nullptr) << "a value of another kind counts as missing";
  EXPECT_EQ(document->find(*document->find(document->root(), "b", Kind::array), "k", Kind::text), nullptr);
}

TEST(CborReader, RefusesIndefiniteLengthsTagsFloatsAndUndefined) {
  for (const char* input : {"5f4101ff", "7f6161ff", "9f01ff", "bf616101ff", "c100", "f93c00", "fa3f800000",
                            "fb3ff0000000000000", "f7", "ff", "819f01ff", "81ff"}) {
    EXPECT_EQ(refusal(hex(input)), Error::unsupported) << input;
  }
}

TEST(CborReader, RefusesWhatIsCutShortAndWhatGoesOn) {
  const Bytes whole = hex("a2616181016162420203");
  ASSERT_TRUE(CborDocument::parse(whole));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n))), Error::malformed) << n;
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_EQ(refusal(longer), Error::malformed);
}

TEST(CborReader, RefusesAKeyTwiceHoweverItsLengthIsWritten) {
  EXPECT_EQ(refusal(hex("a2616101616102")), Error::duplicate_key);
  EXPECT_EQ(refusal(hex("a261610178016102")), Error::duplicate_key);
  EXPECT_EQ(refusal(hex("a16161a2616201616202")), Error::duplicate_key);
  EXPECT_TRUE(CborDocument::parse(hex("a26161016162a1616101"))) << "the same key in another map";
}

TEST(CborReader, RefusesKeysThatAreNotText) {
  for (const char* input : {"a10101", "a1416101", "a18001", "a1a001", "a1f501"}) {
    EXPECT_EQ(refusal(hex(input)), Error::unsupported) << input;
  }
}

TEST(CborReader, BelievesNoLengthThatTheInputDoesNotHold) {
  for (const char* input :
       {"9bffffffffffffffff", "bbffffffffffffffff", "5bffffffffffffffff", "7bffffffffffffffff", "9b7fffffffffffffff",
        "5b7fffffffffffffff", "9affffffff", "ba7fffffff", "5a7fffffff", "99ffff", "bb8000000000000001"}) {
    for (const std::size_t tail : {0u, 1u, 100u}) {
      Bytes bytes = hex(input);
      bytes.resize(bytes.size() + tail);
      EXPECT_EQ(refusal(bytes), Error::malformed) << input << " and " << tail;
    }
  }
}

TEST(CborReader, AllowsTheDepthOfItsLimitAndNoMore) {
  const auto nested = [](std::size_t depth) {
    Bytes out(depth, 0x81);
    out.push_back(0);
    return out;
  };
  EXPECT_TRUE(CborDocument::parse(nested(8)));
  EXPECT_EQ(refusal(nested(9)), Error::too_deep);
  EXPECT_EQ(refusal(nested(48000)), Error::too_deep);
  EXPECT_TRUE(CborDocument::parse(nested(2), {.max_depth = 2}));
  EXPECT_EQ(refusal(nested(3), {.max_depth = 2}), Error::too_deep);
}

TEST(CborReader, BoundsBytesAndItems) {
  EXPECT_EQ(refusal(Bytes(65 * 1024)), Error::too_large);
  const auto array_of = [](std::size_t n) { return mint::join({mint::head(4, n), Bytes(n)}); };
  EXPECT_TRUE(CborDocument::parse(array_of(1023)));
  EXPECT_EQ(refusal(array_of(1024)), Error::too_large);
}

}  // namespace
}  // namespace tandem::protocol
