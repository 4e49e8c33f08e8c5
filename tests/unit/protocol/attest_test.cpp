#include "tandem/protocol/attest.hpp"

#include "unit/protocol/attest_mint.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <openssl/rsa.h>

namespace tandem::protocol {
namespace {

using namespace std::chrono;

const WallTime kNow{sys_days{year{2026} / 6 / 1}};

struct Attestation : testing::Test {
  mint::Authority authority = mint::Authority::synthetic();
  mint::Key key = mint::new_key();
  Sha256 hash = sha256(bytes_of("a challenge"));
  AttestationVerifier verifier{authority.policy()};

  // The fault of an attestation that must be refused.
  AttestFault fault(const mint::Twist& twist) {
    const auto outcome = verifier.verify(mint::attestation(authority, key, hash, twist), hash, kNow);
    EXPECT_FALSE(outcome) << "accepted";
    return outcome ? AttestFault{} : outcome.error();
  }
};

TEST_F(Attestation, OfAGenuinePhoneGivesItsKey) {
  const auto outcome = verifier.verify(mint::attestation(authority, key, hash), hash, kNow);
  ASSERT_TRUE(outcome) << label(outcome.error());
  EXPECT_EQ(outcome->point, mint::point_of(key));
  EXPECT_EQ(outcome->key_id, sha256(mint::point_of(key)));
}

TEST_F(Attestation, OfTheSyntheticVectorIsAccepted) {
  const auto v = mint::vectors("appattest_synthetic.json");
  const auto outcome =
      verifier.verify(mint::unbase64(v["attestation_object_b64"]), mint::hash_of_hex(v["client_data_hash_hex"]), kNow);
  ASSERT_TRUE(outcome) << label(outcome.error());
  EXPECT_EQ(Bytes(outcome->key_id.begin(), outcome->key_id.end()), mint::unbase64(v["key_id_b64"]));
}

TEST_F(Attestation, WithTheCoseKeyBehindItsCredentialIsAccepted) {
  mint::Twist twist;
  twist.auth_data = mint::join({mint::auth_data(authority, key), Bytes(77, 0xa5)});
  EXPECT_TRUE(verifier.verify(mint::attestation(authority, key, hash, twist), hash, kNow));
}

TEST_F(Attestation, IsRejectedWithoutAnAppId) {
  AttestPolicy policy = authority.policy();
  policy.app_id.clear();
  const auto outcome = AttestationVerifier(policy).verify(mint::attestation(authority, key, hash), hash, kNow);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error(), AttestFault::not_configured);
}

TEST_F(Attestation, OfAnotherFormatIsRejected) {
  for (const char* format : {"fido-u2f", "apple", "Apple-appattest", "apple-appattest ", ""}) {
    EXPECT_EQ(fault({.format = format}), AttestFault::wrong_format) << format;
  }
}

TEST_F(Attestation, NeedsExactlyTwoCertificates) {
  const Bytes leaf;  // stands for the right one
  EXPECT_EQ(fault({.chain = std::vector<Bytes>{}}), AttestFault::wrong_chain_length);
  EXPECT_EQ(fault({.chain = std::vector<Bytes>{leaf}}), AttestFault::wrong_chain_length);
  EXPECT_EQ(fault({.chain = std::vector<Bytes>{leaf, authority.intermediate, authority.root}}),
            AttestFault::wrong_chain_length);
}

TEST_F(Attestation, WithABrokenChainIsRejected) {
  const Bytes leaf;
  mint::Certificate other = mint::leaf(authority, key);
  other.signer = mint::new_key();
  EXPECT_EQ(fault({.leaf = other}), AttestFault::untrusted) << "the issuer's name, another's key";
  other.signer = authority.root_key;
  other.issuer = "Test Attest Root";
  EXPECT_EQ(fault({.leaf = other}), AttestFault::untrusted) << "signed by the root, past the intermediate";
  EXPECT_EQ(fault({.chain = std::vector<Bytes>{leaf, authority.root}, .leaf = other}), AttestFault::untrusted)
      << "the root is no intermediate";
  Bytes altered = authority.intermediate;
  altered[altered.size() - 5] ^= 1;
  EXPECT_EQ(fault({.chain = std::vector<Bytes>{leaf, altered}}), AttestFault::untrusted);
  EXPECT_EQ(fault({.chain = std::vector<Bytes>{leaf, Bytes{1, 2, 3}}}), AttestFault::bad_certificate);
  Bytes longer = authority.intermediate;
  longer.push_back(0);
  EXPECT_EQ(fault({.chain = std::vector<Bytes>{leaf, longer}}), AttestFault::bad_certificate);
}

TEST_F(Attestation, FromAnIntermediateThatMayNotSignCertificatesIsRejected) {
  mint::Certificate ca{.subject = "Test Attest CA",
                       .issuer = "Test Attest Root",
                       .key = authority.intermediate_key,
                       .signer = authority.root_key,
                       .ca = true,
                       .key_usage = "critical,keyCertSign,cRLSign"};
  const auto chain_with = [&](const mint::Certificate& c) {
    return mint::Twist{.chain = std::vector<Bytes>{{}, c.der()}};
  };
  EXPECT_TRUE(verifier.verify(mint::attestation(authority, key, hash, chain_with(ca)), hash, kNow));
  ca.key_usage = "critical,digitalSignature";
  EXPECT_EQ(fault(chain_with(ca)), AttestFault::not_a_ca);
  ca.key_usage = "";
  ca.ca = false;
  EXPECT_EQ(fault(chain_with(ca)), AttestFault::not_a_ca);
  ca.ca.reset();
  EXPECT_EQ(fault(chain_with(ca)), AttestFault::not_a_ca);
}

TEST_F(Attestation, SignedWithSha1IsRejected) {
  mint::Certificate weak = mint::leaf(authority, key);
  weak.digest = "SHA1";
  EXPECT_EQ(fault({.leaf = weak}), AttestFault::untrusted);
}

TEST_F(Attestation, IsAcceptedWithinTheValidityOfAllThreeCertificatesOnly) {
  mint::Certificate certificate = mint::leaf(authority, key);
  certificate.before = kNow - hours(1);
  certificate.after = kNow + hours(1);
  const Bytes object = mint::attestation(authority, key, hash, {.leaf = certificate});
  EXPECT_TRUE(verifier.verify(object, hash, kNow));
  EXPECT_TRUE(verifier.verify(object, hash, kNow + minutes(59)));
  EXPECT_EQ(verifier.verify(object, hash, kNow + hours(1) + seconds(1)).error(), AttestFault::expired);
  EXPECT_EQ(verifier.verify(object, hash, kNow - hours(1) - seconds(1)).error(), AttestFault::expired);
  // The intermediate, remembered or not, and the root.
  mint::Certificate ca{.subject = "Test Attest CA",
                       .issuer = "Test Attest Root",
                       .key = authority.intermediate_key,
                       .signer = authority.root_key,
                       .ca = true};
  ca.after = kNow + hours(1);
  const Bytes short_lived = mint::attestation(authority, key, hash, {.chain = std::vector<Bytes>{{}, ca.der()}});
  EXPECT_EQ(verifier.verify(short_lived, hash, kNow + hours(2)).error(), AttestFault::expired);
  EXPECT_TRUE(verifier.verify(short_lived, hash, kNow));
  EXPECT_EQ(verifier.verify(short_lived, hash, kNow + hours(2)).error(), AttestFault::expired) << "remembered";
  mint::Certificate eternal = mint::leaf(authority, key);
  eternal.after = WallTime{sys_days{year{2049} / 1 / 1}};
  EXPECT_EQ(verifier
                .verify(mint::attestation(authority, key, hash, {.leaf = eternal}), hash,
                        WallTime{sys_days{year{2046} / 1 / 1}})
                .error(),
            AttestFault::expired);
}

TEST_F(Attestation, RemembersAnIntermediateOnceAndABoundedNumber) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(verifier.verify(mint::attestation(authority, key, hash), hash, kNow));
  EXPECT_EQ(verifier.remembered(), 1u);
  for (int i = 0; i < 40; ++i) {
    mint::Certificate ca{.subject = "Test Attest CA",
                         .issuer = "Test Attest Root",
                         .key = authority.intermediate_key,
                         .signer = authority.root_key,
                         .ca = true};
    ASSERT_TRUE(verifier.verify(mint::attestation(authority, key, hash, {.chain = std::vector<Bytes>{{}, ca.der()}}),
                                hash, kNow));
  }
  EXPECT_LE(verifier.remembered(), 16u);
}

TEST_F(Attestation, OfAnIntermediateThatIsRememberedStillNeedsItsSignature) {
  ASSERT_TRUE(verifier.verify(mint::attestation(authority, key, hash), hash, kNow));
  mint::Certificate forged = mint::leaf(authority, key);
  forged.signer = mint::new_key();
  EXPECT_EQ(fault({.leaf = forged}), AttestFault::untrusted);
}

TEST_F(Attestation, NeedsItsNonceInTheExtensionOnceAndInDer) {
  Bytes both = mint::auth_data(authority, key);
  both.insert(both.end(), hash.begin(), hash.end());
  const Bytes right = mint::nonce_der(sha256(both));
  using Extensions = std::vector<Bytes>;
  EXPECT_EQ(fault({.nonce_extensions = Extensions{}}), AttestFault::no_nonce);
  EXPECT_EQ(fault({.nonce_extensions = Extensions{right, right}}), AttestFault::no_nonce);
  Bytes longer = right;
  longer.push_back(0);
  EXPECT_EQ(fault({.nonce_extensions = Extensions{longer}}), AttestFault::no_nonce);
  EXPECT_EQ(fault({.nonce_extensions = Extensions{Bytes(right.begin(), right.end() - 1)}}), AttestFault::no_nonce);
  EXPECT_EQ(fault({.nonce_extensions = Extensions{Bytes(right.begin() + 4, right.end())}}), AttestFault::no_nonce)
      << "bare";
  EXPECT_EQ(fault({.nonce_extensions = Extensions{{}}}), AttestFault::no_nonce);
  EXPECT_EQ(fault({.nonce_extensions = Extensions{mint::nonce_der(sha256(bytes_of("x")))}}), AttestFault::wrong_nonce);
}

TEST_F(Attestation, OfAnotherChallengeIsRejected) {
  const Bytes object = mint::attestation(authority, key, hash);
  EXPECT_EQ(verifier.verify(object, sha256(bytes_of("another")), kNow).error(), AttestFault::wrong_nonce);
}

TEST_F(Attestation, NeedsAP256KeyWhoseHashIsTheCredential) {
  mint::Certificate other = mint::leaf(authority, mint::new_key());
  EXPECT_EQ(fault({.leaf = other}), AttestFault::wrong_key_id);
  other.key = mint::new_key("P-384");
  EXPECT_EQ(fault({.leaf = other}), AttestFault::wrong_key_type);
  other.key = mint::new_key("secp256k1");
  EXPECT_EQ(fault({.leaf = other}), AttestFault::wrong_key_type);
  other.key = mint::Key(EVP_RSA_gen(2048), EVP_PKEY_free);
  EXPECT_EQ(fault({.leaf = other}), AttestFault::wrong_key_type);
  EXPECT_EQ(fault({.credential = Bytes(32)}), AttestFault::wrong_key_id);
  EXPECT_EQ(fault({.credential = Bytes(33)}), AttestFault::wrong_key_id);
  EXPECT_EQ(fault({.credential = Bytes{}}), AttestFault::short_data);
}

TEST_F(Attestation, OfAnotherAppEnvironmentOrCounterIsRejected) {
  EXPECT_EQ(fault({.app_id = "TEAMID1234.com.example.other"}), AttestFault::wrong_app);
  EXPECT_EQ(fault({.aaguid = "appattestdevelop"}), AttestFault::wrong_environment);
  EXPECT_EQ(fault({.aaguid = "appattest       "}), AttestFault::wrong_environment);
  EXPECT_EQ(fault({.counter = 1}), AttestFault::wrong_counter);
  EXPECT_EQ(fault({.counter = 1u << 24}), AttestFault::wrong_counter);
  AttestPolicy development = authority.policy();
  development.environment = AttestEnvironment::development;
  AttestationVerifier other(development);
  EXPECT_TRUE(other.verify(mint::attestation(authority, key, hash, {.aaguid = "appattestdevelop"}), hash, kNow));
  EXPECT_EQ(other.verify(mint::attestation(authority, key, hash), hash, kNow).error(), AttestFault::wrong_environment);
}

TEST_F(Attestation, WithDataThatEndsEarlyIsRejected) {
  const Bytes whole = mint::auth_data(authority, key);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    mint::Twist twist;
    twist.auth_data = Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    ASSERT_EQ(fault(twist), AttestFault::short_data) << n;
  }
}

TEST_F(Attestation, WithAnyByteFlippedOutsideTheReceiptIsRejected) {
  const Bytes object = mint::attestation(authority, key, hash);
  const auto receipt = std::ranges::search(object, bytes_of("greceipt")).begin();
  for (std::size_t i = 0; i < object.size(); ++i) {
    const auto distance = std::distance(object.begin(), receipt) - static_cast<std::ptrdiff_t>(i);
    if (distance <= 0 && distance > -10) continue;
    Bytes spoilt = object;
    spoilt[i] ^= 0x55;
    ASSERT_FALSE(verifier.verify(spoilt, hash, kNow)) << "byte " << i;
  }
}

TEST_F(Attestation, IsRejectedAsCborOrForMissingFieldsBeforeAnythingElse) {
  EXPECT_EQ(verifier.verify({}, hash, kNow).error(), AttestFault::bad_cbor);
  EXPECT_EQ(verifier.verify(Bytes{0xa0}, hash, kNow).error(), AttestFault::missing_field);
  EXPECT_EQ(verifier.verify(Bytes{0x80}, hash, kNow).error(), AttestFault::missing_field);
  EXPECT_EQ(verifier.verify(Bytes(48000, 0x81), hash, kNow).error(), AttestFault::bad_cbor);
}

TEST(AttestFaults, HaveNamesOfTheirOwn) {
  std::set<std::string_view> labels, texts;
  for (int i = 0; i < kAttestFaultCount; ++i) {
    labels.insert(label(static_cast<AttestFault>(i)));
    texts.insert(to_string(static_cast<AttestFault>(i)));
  }
  EXPECT_EQ(labels.size(), static_cast<std::size_t>(kAttestFaultCount));
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(kAttestFaultCount));
  EXPECT_FALSE(labels.contains("other"));
}

TEST(RootCertificates, AreReadFromPemWithTextAroundThem) {
  const std::string pem = mint::vectors("appattest_synthetic.json")["root_pem"];
  EXPECT_EQ(parse_root_certificates(pem)->size(), 1u);
  EXPECT_EQ(parse_root_certificates("a comment\r\n" + pem + "\n\n" + pem)->size(), 2u);
  EXPECT_EQ(parse_root_certificates("").error(), make_error_code(Error::not_found));
  EXPECT_EQ(parse_root_certificates(pem.substr(0, pem.size() - 30)).error(), make_error_code(Error::malformed));
  std::string spoilt = pem;
  spoilt[40] = '!';
  EXPECT_EQ(parse_root_certificates(spoilt).error(), make_error_code(Error::bad_base64));
}

TEST(RootCertificates, ApplesIsBuiltIn) { EXPECT_GT(apple_root().size(), 500u); }

}  // namespace
}  // namespace tandem::protocol
