// A real phone's attestation and assertion, against Apple's own root.
#include "tandem/protocol/attest.hpp"
#include "unit/protocol/attest_mint.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace tandem::protocol {
namespace {

using namespace std::chrono;

const WallTime kThen{sys_days{year{2024} / 2 / 7} + hours(12)};

struct RealAttestation : testing::Test {
  nlohmann::json v = mint::vectors("appattest_real.json")["attestation"];
  Bytes object = mint::unbase64(v["attestation_object_b64"]);
  Sha256 hash = mint::hash_of_hex(v["client_data_hash_hex"]);
  AttestPolicy policy{v["app_id"], AttestEnvironment::production, {apple_root()}};
};

TEST_F(RealAttestation, VerifiesAtItsDate) {
  AttestationVerifier verifier(policy);
  const auto outcome = verifier.verify(object, hash, kThen);
  ASSERT_TRUE(outcome) << label(outcome.error());
  EXPECT_EQ(Bytes(outcome->key_id.begin(), outcome->key_id.end()), mint::unbase64(v["key_id_b64"]));
  EXPECT_EQ(Bytes(outcome->point.begin(), outcome->point.end()), mint::unbase64(v["public_key_b64"]));
}

TEST_F(RealAttestation, IsExpiredASecondAfterItsLeafAndNotValidBeforeIt) {
  AttestationVerifier verifier(policy);
  const WallTime last{sys_days{year{2024} / 12 / 21} + hours(12) + minutes(42) + seconds(56)};
  EXPECT_TRUE(verifier.verify(object, hash, last - seconds(1)));
  EXPECT_EQ(verifier.verify(object, hash, last + seconds(1)).error(), AttestFault::expired);
  EXPECT_EQ(verifier.verify(object, hash, WallTime{sys_days{year{2024} / 2 / 1}}).error(), AttestFault::expired);
}

TEST_F(RealAttestation, FailsForAnotherAppEnvironmentHashOrRoot) {
  AttestPolicy other = policy;
  other.app_id += "x";
  EXPECT_EQ(AttestationVerifier(other).verify(object, hash, kThen).error(), AttestFault::wrong_app);
  other = policy;
  other.environment = AttestEnvironment::development;
  EXPECT_EQ(AttestationVerifier(other).verify(object, hash, kThen).error(), AttestFault::wrong_environment);
  other = policy;
  other.roots = {mint::Authority::synthetic().root};
  EXPECT_EQ(AttestationVerifier(other).verify(object, hash, kThen).error(), AttestFault::untrusted);
  other.roots.push_back(apple_root());
  EXPECT_TRUE(AttestationVerifier(other).verify(object, hash, kThen)) << "any of several roots will do";
  Sha256 another = hash;
  another[31] ^= 1;
  EXPECT_EQ(AttestationVerifier(policy).verify(object, another, kThen).error(), AttestFault::wrong_nonce);
}

TEST_F(RealAttestation, FailsWithAnyBitOfItsAuthenticatorDataChanged) {
  AttestationVerifier verifier(policy);
  const auto data = std::ranges::search(object, sha256(bytes_of(policy.app_id)));  // it begins with the app's hash
  ASSERT_FALSE(data.empty());
  const auto first = static_cast<std::size_t>(data.begin() - object.begin());
  ASSERT_EQ(object.size() - first, 164u) << "and is the last thing in the object";
  ASSERT_EQ(object[first - 2], 0x58) << "a byte string";
  ASSERT_EQ(object[first - 1], 164);
  for (std::size_t i = first; i < object.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes spoilt = object;
      spoilt[i] = static_cast<std::uint8_t>(spoilt[i] ^ 1u << bit);
      ASSERT_FALSE(verifier.verify(spoilt, hash, kThen)) << "byte " << i - first << " bit " << bit;
    }
  }
  Bytes shorter(object.begin(), object.end() - 1);
  shorter[first - 1] = 163;
  EXPECT_EQ(verifier.verify(shorter, hash, kThen).error(), AttestFault::wrong_nonce);
  Bytes longer = object;
  longer.push_back(0);
  longer[first - 1] = 165;
  EXPECT_EQ(verifier.verify(longer, hash, kThen).error(), AttestFault::wrong_nonce);
}

struct RealAssertion : testing::Test {
  nlohmann::json v = mint::vectors("appattest_real.json")["assertion"];
  Bytes object = mint::unbase64(v["assertion_b64"]);
  Sha256 hash = mint::hash_of_hex(v["client_data_hash_hex"]);
  std::string app_id = v["app_id"];
  P256Point point = [this] {
    const Bytes raw = mint::unbase64(v["public_key_b64"]);
    P256Point p{};
    std::ranges::copy(raw, p.begin());
    return p;
  }();
};

TEST_F(RealAssertion, VerifiesAndGivesItsCounter) {
  const auto counter = verify_assertion(object, point, app_id, hash);
  ASSERT_TRUE(counter) << label(counter.error());
  EXPECT_EQ(*counter, v["counter"].get<std::uint32_t>());
}

TEST_F(RealAssertion, FailsForAnotherAppHashOrKeyAndWithAnyBitChanged) {
  EXPECT_EQ(verify_assertion(object, point, app_id + "x", hash).error(), AttestFault::wrong_app);
  EXPECT_EQ(verify_assertion(object, mint::point_of(mint::new_key()), app_id, hash).error(),
            AttestFault::bad_signature);
  Sha256 another = hash;
  another[0] ^= 1;
  EXPECT_EQ(verify_assertion(object, point, app_id, another).error(), AttestFault::bad_signature);
  for (std::size_t i = 0; i < object.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes spoilt = object;
      spoilt[i] = static_cast<std::uint8_t>(spoilt[i] ^ 1u << bit);
      ASSERT_FALSE(verify_assertion(spoilt, point, app_id, hash)) << "byte " << i << " bit " << bit;
    }
  }
}

}  // namespace
}  // namespace tandem::protocol
