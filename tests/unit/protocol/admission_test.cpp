#include "tandem/protocol/admission.hpp"

#include <gtest/gtest.h>

namespace tandem::protocol {
namespace {

TEST(Hello, IsReadWithItsRoleAndManners) {
  const auto mac = parse_hello(R"({"v":1,"role":"mac"})");
  ASSERT_TRUE(mac);
  EXPECT_EQ(mac->role, Role::mac);
  EXPECT_FALSE(mac->non_displacing);
  const auto phone = parse_hello(R"( {"role":"phone","nonDisplacing":true,"v":1,"later":{"x":[1]}} )");
  ASSERT_TRUE(phone);
  EXPECT_EQ(phone->role, Role::phone);
  EXPECT_TRUE(phone->non_displacing);
  EXPECT_FALSE(parse_hello(R"({"v":1,"role":"mac","nonDisplacing":"true"})")->non_displacing);
}

TEST(Hello, OfAnotherVersionOrRoleIsRefused) {
  for (const char* text : {R"({"v":2,"role":"mac"})", R"({"v":"1","role":"mac"})", R"({"v":true,"role":"mac"})",
                           R"({"v":1.0,"role":"mac"})", R"({"role":"mac"})", R"({"v":1})", R"({"v":1,"role":"Mac"})",
                           R"({"v":1,"role":1})", R"({"v":null,"role":"mac"})", R"({"v":-1,"role":"mac"})",
                           R"({"v":18446744073709551617,"role":"mac"})"}) {
    EXPECT_FALSE(parse_hello(text)) << text;
  }
}

TEST(Hello, ThatIsNoStrictJsonObjectIsRefused) {
  for (const char* text :
       {"", "{", "null", "[]", "1", R"("mac")", R"({"v":1,"role":"mac"}x)", R"({"v":1,"role":"mac",})",
        R"({"v":1,"role":"mac","role":"mac"})", R"({"v":1,"role":"mac","\u0072ole":"phone"})", "{'v':1,'role':'mac'}",
        "{\"v\":1,\"role\":\"mac\xff\"}"}) {
    EXPECT_FALSE(parse_hello(text)) << text;
  }
  EXPECT_EQ(parse_hello(R"({"v":1,"v":1,"role":"mac"})").error(), make_error_code(Error::duplicate_key));
}

TEST(Hello, OfEightKibibytesPassesAndOneByteMoreDoesNot) {
  const std::string head = R"({"v":1,"role":"mac","pad":")";
  const auto padded = [&](std::size_t size) { return head + std::string(size - head.size() - 2, 'p') + "\"}"; };
  EXPECT_TRUE(parse_hello(padded(8192)));
  EXPECT_FALSE(parse_hello(padded(8193)));
}

TEST(Proof, HoldsWhatIsPresentAndAString) {
  const auto both = parse_proof(R"({"sig":"","ticket":"abc"})");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->signature, "");
  EXPECT_EQ(both->ticket, "abc");
  const auto none = parse_proof(R"({"sig":5,"ticket":null,"Sig":"x"})");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->signature);
  EXPECT_FALSE(none->ticket);
  EXPECT_TRUE(parse_proof("{}"));
}

TEST(Proof, ThatIsNoObjectIsRefused) {
  for (const char* text : {"", "null", "[]", "[{}]", "true", "{}{}", "{\"sig\":}", R"({"sig":"a","sig":"b"})"}) {
    EXPECT_FALSE(parse_proof(text)) << text;
  }
  EXPECT_FALSE(parse_proof(std::string(8000, '[')));
}

TEST(AdmissionMessages, AreWhatTheContractShows) {
  const Bytes nonce(32, 0);
  EXPECT_EQ(nonce_message(nonce), R"({"nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})");
  EXPECT_EQ(admitted_message(), R"({"ok":true})");
  EXPECT_EQ(admitted_message(Bytes(24, 0)), R"({"ok":true,"registrationToken":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})");
  EXPECT_EQ(refused_message(CloseReason::ticket_required), R"({"ok":false,"error":"ticket required"})");
}

TEST(AdmissionMessages, OfAClientAreUnderstoodByTheRelay) {
  const auto hello = parse_hello(hello_message(Role::phone, true));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->role, Role::phone);
  EXPECT_TRUE(hello->non_displacing);
  const auto proof = parse_proof(proof_message({"c2ln", std::nullopt}));
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->signature, "c2ln");
  EXPECT_FALSE(proof->ticket);
  EXPECT_TRUE(parse_proof(proof_message({})));
}

}  // namespace
}  // namespace tandem::protocol
