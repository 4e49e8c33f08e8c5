#include "tandem/protocol/derivation.hpp"

#include "tandem/protocol/canonical.hpp"
#include "unit/protocol/vectors.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::protocol {
namespace {

using test::read_vectors;
using test::unhex;

TEST(Canonical, MatchesTheVectors) {
  const auto vectors = read_vectors("canonical.json");
  ASSERT_GE(vectors.size(), 5u);
  for (const auto& v : vectors) {
    std::vector<Bytes> fields;
    for (const auto& f : v["fields_hex"]) fields.push_back(unhex(f));
    const std::vector<ByteView> views(fields.begin(), fields.end());
    EXPECT_EQ(hex_encode(canonical(v["domain"].get<std::string>(), views)), v["encoded_hex"].get<std::string>());
  }
}

TEST(RoomNames, MatchTheVectors) {
  const auto vectors = read_vectors("rooms.json");
  ASSERT_GE(vectors.size(), 5u);
  for (const auto& v : vectors) {
    const RoomName name = room_name(unhex(v["rs_hex"]), v["pid"].get<std::string>());
    EXPECT_EQ(name.hex(), v["room"].get<std::string>());
    EXPECT_EQ(name.bucket().value, v["bucket"].get<unsigned>());
  }
}

TEST(Joins, MatchTheVectors) {
  const auto vectors = read_vectors("joins.json");
  ASSERT_GE(vectors.size(), 3u);
  for (const auto& v : vectors) {
    const Ed25519Seed seed = auth_seed(unhex(v["room_secret_hex"]));
    EXPECT_EQ(hex_encode(seed), v["seed_hex"].get<std::string>());
    const Ed25519PublicKey verifier = ed25519_public_key(seed);
    EXPECT_EQ(base64_encode(verifier), v["verifier_b64"].get<std::string>());
    EXPECT_TRUE(ed25519_is_valid_key(verifier));

    const RoomName room = RoomName::parse(v["room"].get<std::string>()).value();
    const std::string origin = v["origin"];
    const Bytes nonce = base64_decode(v["nonce_b64"].get<std::string>()).value();
    for (const Role role : {Role::mac, Role::phone}) {
      const auto& expected = v[std::string(to_string(role))];
      const Bytes transcript = join_transcript(role, nonce, room, origin);
      EXPECT_EQ(hex_encode(transcript), expected["transcript_hex"].get<std::string>());
      EXPECT_EQ(base64_encode(ed25519_sign(seed, transcript)), expected["sig_b64"].get<std::string>());
    }
    const Bytes transcript = delete_transcript(nonce, room, origin);
    EXPECT_EQ(hex_encode(transcript), v["delete"]["transcript_hex"].get<std::string>());
    const Bytes signature = base64_decode(v["delete"]["sig_b64"].get<std::string>()).value();
    EXPECT_TRUE(ed25519_verify(verifier, transcript, signature));
    EXPECT_EQ(hex_encode(client_data_hash(nonce, origin)), v["client_data_hash_hex"].get<std::string>());
  }
}

TEST(Joins, AMacsSignatureIsNotAPhones) {
  const Ed25519Seed seed = auth_seed(Bytes(32, 7));
  const Bytes nonce(32, 1);
  const RoomName room = room_name(Bytes(32, 2), "x");
  const auto signature = ed25519_sign(seed, join_transcript(Role::mac, nonce, room, "https://a.example"));
  const auto key = ed25519_public_key(seed);
  EXPECT_TRUE(ed25519_verify(key, join_transcript(Role::mac, nonce, room, "https://a.example"), signature));
  EXPECT_FALSE(ed25519_verify(key, join_transcript(Role::phone, nonce, room, "https://a.example"), signature));
  EXPECT_FALSE(ed25519_verify(key, join_transcript(Role::mac, nonce, room, "https://b.example"), signature));
}

}  // namespace
}  // namespace tandem::protocol
