#include "tandem/protocol/attest.hpp"
#include "unit/protocol/attest_mint.hpp"

#include <gtest/gtest.h>

namespace tandem::protocol {
namespace {

struct Assertion : testing::Test {
  std::string app = "TEAMID1234.com.example.companion";
  mint::Key key = mint::new_key();
  P256Point point = mint::point_of(key);
  Sha256 hash = sha256(bytes_of("a challenge"));
};

TEST_F(Assertion, OfThePinnedKeyGivesItsCounter) {
  for (const std::uint32_t counter : {0u, 1u, 255u, 65536u, 0xffffffffu}) {
    const auto outcome = verify_assertion(mint::assertion(key, app, counter, hash), point, app, hash);
    ASSERT_TRUE(outcome) << label(outcome.error());
    EXPECT_EQ(*outcome, counter);
  }
}

TEST_F(Assertion, OfTheSyntheticVectorIsAccepted) {
  const auto v = mint::vectors("appattest_synthetic.json");
  P256Point pinned{};
  std::ranges::copy(mint::unbase64(v["public_key_b64"]), pinned.begin());
  const auto outcome = verify_assertion(mint::unbase64(v["assertion_b64"]), pinned, v["app_id"].get<std::string>(),
                                        mint::hash_of_hex(v["client_data_hash_hex"]));
  ASSERT_TRUE(outcome) << label(outcome.error());
  EXPECT_EQ(*outcome, v["assertion_counter"].get<std::uint32_t>());
}

TEST_F(Assertion, SignedOverTheMessageInsteadOfItsHashIsRejected) {
  EXPECT_EQ(verify_assertion(mint::assertion(key, app, 1, hash, true), point, app, hash).error(),
            AttestFault::bad_signature);
}

TEST_F(Assertion, OfAnotherKeyAppOrChallengeIsRejected) {
  const Bytes object = mint::assertion(key, app, 1, hash);
  EXPECT_EQ(verify_assertion(object, mint::point_of(mint::new_key()), app, hash).error(), AttestFault::bad_signature);
  EXPECT_EQ(verify_assertion(object, point, "other", hash).error(), AttestFault::wrong_app);
  EXPECT_EQ(verify_assertion(object, point, "", hash).error(), AttestFault::not_configured);
  EXPECT_EQ(verify_assertion(object, point, app, sha256(bytes_of("another"))).error(), AttestFault::bad_signature);
}

TEST_F(Assertion, WithAPointOffTheCurveIsRejected) {
  const Bytes object = mint::assertion(key, app, 1, hash);
  P256Point off = point;
  off[64] ^= 1;
  EXPECT_EQ(verify_assertion(object, off, app, hash).error(), AttestFault::bad_signature);
  EXPECT_EQ(verify_assertion(object, P256Point{}, app, hash).error(), AttestFault::bad_signature);
}

TEST_F(Assertion, WithDataThatEndsEarlyIsRejected) {
  const Sha256 id = sha256(bytes_of(app));
  Bytes data(id.begin(), id.end());
  data.resize(37);
  EXPECT_TRUE(verify_assertion(mint::assertion_over(key, data, hash), point, app, hash));
  for (const std::size_t n : {0u, 32u, 33u, 36u}) {
    const Bytes cut(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(verify_assertion(mint::assertion_over(key, cut, hash), point, app, hash).error(), AttestFault::short_data)
        << n;
  }
}

TEST_F(Assertion, ThatIsNotTheRightCborIsRejected) {
  const Bytes good = mint::assertion(key, app, 1, hash);
  const auto fault = [&](const Bytes& object) { return verify_assertion(object, point, app, hash).error(); };
  EXPECT_EQ(fault(mint::join({good, Bytes{0}})), AttestFault::bad_cbor);
  EXPECT_EQ(fault(Bytes(good.begin(), good.end() - 1)), AttestFault::bad_cbor);
  EXPECT_EQ(fault(Bytes{0xa0}), AttestFault::missing_field);
  EXPECT_EQ(fault(Bytes(40000, 0x81)), AttestFault::bad_cbor);
  EXPECT_EQ(fault(mint::join({mint::head(5, 2), mint::text("signature"), mint::text("x"),
                              mint::text("authenticatorData"), mint::bytes(Bytes(37))})),
            AttestFault::missing_field);
}

TEST_F(Assertion, WithARawOrEmptySignatureIsRejected) {
  const Sha256 id = sha256(bytes_of(app));
  Bytes data(id.begin(), id.end());
  data.resize(37);
  for (const std::size_t n : {0u, 64u}) {
    const Bytes object = mint::join({mint::head(5, 2), mint::text("signature"), mint::bytes(Bytes(n, 0x11)),
                                     mint::text("authenticatorData"), mint::bytes(data)});
    EXPECT_EQ(verify_assertion(object, point, app, hash).error(), AttestFault::bad_signature) << n;
  }
}

}  // namespace
}  // namespace tandem::protocol
