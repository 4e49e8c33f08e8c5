#include "tandem/core/json.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

Error fault_of(std::string_view text, JsonLimits limits = {}) {
  const auto r = parse_json(text, limits);
  return r ? Error{} : static_cast<Error>(r.error().value());
}

TEST(StrictJson, ReadsWhatIsValid) {
  const auto v = parse_json(R"({"a":[1,-2,3.5,true,null,"\u00e9"],"b":{}})").value();
  EXPECT_EQ(v["a"][0], 1);
  EXPECT_EQ(v["a"].size(), 6u);
  EXPECT_TRUE(v["b"].is_object());
}

TEST(StrictJson, RefusesDuplicateKeysEvenWhenEscapedOtherwise) {
  EXPECT_EQ(fault_of(R"({"role":1,"role":2})"), Error::duplicate_key);
  EXPECT_EQ(fault_of(R"({"role":1,"\u0072ole":2})"), Error::duplicate_key);
  EXPECT_EQ(fault_of(R"({"a":{"x":1,"x":1}})"), Error::duplicate_key);
  EXPECT_EQ(fault_of(R"({"a":{"x":1},"b":{"x":1}})"), Error{});
}

TEST(StrictJson, RefusesWhatFollowsTheValueAndWhatIsNoJson) {
  for (const std::string& bad : {std::string("{}x"), std::string("{}{}"), std::string("{}\0", 3), std::string("\0", 1),
                                 std::string(), std::string("\xEF\xBB\xBF{}"), std::string("{\"a\":1e400}"),
                                 std::string("\"\\ud800\""), std::string("\"\xff\""), std::string("{/*x*/}"),
                                 std::string("[1,]"), std::string("{\"a\":1,}"), std::string("01")})
    EXPECT_EQ(fault_of(bad), Error::malformed) << bad;
}

TEST(StrictJson, BoundsDepthAndSize) {
  EXPECT_EQ(fault_of(std::string(16, '[') + std::string(16, ']')), Error{});
  EXPECT_EQ(fault_of(std::string(17, '[') + std::string(17, ']')), Error::too_deep);
  EXPECT_EQ(fault_of(std::string(60000, '[')), Error::too_deep);
  EXPECT_EQ(fault_of("[" + std::string(100, ' ') + "]", {100, 16}), Error::too_large);
}

TEST(JsonFiles, SayWhereAndWhat) {
  Json out;
  JsonFault fault;
  JsonLines lines;
  const std::string good = "{ // a comment\n \"limits\": {\n  \"rooms\": 5\n },\n \"listen\": [\"a\",\n \"b\"] }";
  ASSERT_TRUE(parse_json_file(good, {}, true, out, fault, &lines)) << fault.what;
  EXPECT_EQ(lines.at("limits"), 2u);
  EXPECT_EQ(lines.at("limits.rooms"), 3u);
  EXPECT_EQ(lines.at("listen"), 5u);
  EXPECT_EQ(lines.at("listen[1]"), 6u);

  EXPECT_FALSE(parse_json_file("{\n\"a\": {\n\"x\": 1,\n\"x\": 2}}", {}, true, out, fault));
  EXPECT_EQ(fault.error, Error::duplicate_key);
  EXPECT_EQ(fault.path, "a.x");
  EXPECT_EQ(fault.line, 4u);

  fault = {};
  EXPECT_FALSE(parse_json_file("{\n\"a\": 1,\n}", {}, true, out, fault));
  EXPECT_EQ(fault.what, "a comma before }");
  EXPECT_EQ(fault.line, 2u);

  fault = {};
  EXPECT_FALSE(parse_json_file("{\n\"a\": nope }", {}, true, out, fault));
  EXPECT_EQ(fault.line, 2u);
}

}  // namespace
}  // namespace tandem
