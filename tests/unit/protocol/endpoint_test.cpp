#include "tandem/protocol/endpoint.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tandem::protocol {
namespace {

TEST(EndpointBody, AbsentAndMistypedFieldsAreMissingAndEmptyOnesPresent) {
  const auto f = parse_endpoint_body(
      R"({"challenge":"","verifier":7,"assertion":null,"signature":["x"],"registrationToken":"t","other":1})");
  ASSERT_TRUE(f);
  EXPECT_EQ(f->challenge, "");
  EXPECT_FALSE(f->verifier);
  EXPECT_FALSE(f->assertion);
  EXPECT_FALSE(f->signature);
  EXPECT_FALSE(f->attestation_object);
  EXPECT_EQ(f->registration_token, "t");
}

TEST(EndpointBody, ThatIsNoObjectIsRefused) {
  for (const char* text :
       {"", "[]", "null", "\"text\"", "42", "true", "{}{}", R"({"a":1,"a":2})", R"({"x":"\ud800"})"}) {
    EXPECT_FALSE(parse_endpoint_body(text)) << text;
  }
  EXPECT_FALSE(parse_endpoint_body(R"({"x":)" + std::string(30000, '[') + std::string(30000, ']') + "}"));
}

TEST(Answers, HaveTheContractsTextsAndStatuses) {
  EXPECT_EQ(refusal_body(Answer::bad_json), R"({"ok":false,"error":"bad json"})");
  EXPECT_EQ(refusal_body(Answer::assertion_rejected, "wrong app"),
            R"({"ok":false,"error":"assertion rejected: wrong app"})");
  EXPECT_EQ(challenge_body(Bytes(32, 0)), R"({"ok":true,"challenge":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})");
  EXPECT_EQ(ticket_body(Bytes(24, 0)), R"({"ok":true,"ticket":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})");
  EXPECT_EQ(status(Answer::missing_verifier), 400);
  EXPECT_EQ(status(Answer::stale_assertion), 403);
  EXPECT_EQ(status(Answer::too_many_outstanding_challenges), 429);
  EXPECT_EQ(status(Answer::state_unavailable), 500);
  EXPECT_EQ(status(Answer::misdirected), 421);
}

TEST(Answers, HaveLabelsThatAreTheirTextsInSnakeCase) {
  std::set<std::string> seen;
  for (int i = 0; i < kAnswerCount; ++i) {
    const auto a = static_cast<Answer>(i);
    std::string expected(text(a).empty() ? "ok" : text(a));
    for (char& c : expected) {
      if (c == ' ') c = '_';
    }
    EXPECT_EQ(label(a), expected);
    EXPECT_TRUE(seen.insert(std::string(label(a))).second) << label(a);
  }
}

}  // namespace
}  // namespace tandem::protocol
