#include "tandem/protocol/derivation.hpp"

#include "tandem/protocol/canonical.hpp"

#include <string>

namespace tandem::protocol {
namespace {

constexpr std::uint8_t kTranscriptVersion = 1;

}  // namespace

RoomName room_name(ByteView rs, std::string_view pid) {
  return RoomName(sha256(canonical("iterm2-room", {rs, bytes_of(pid)})));
}

Ed25519Seed auth_seed(ByteView room_secret) { return hkdf_sha256(room_secret, {}, bytes_of("relay-auth-ed25519")); }

Bytes join_transcript(Role role, ByteView nonce, const RoomName& room, std::string_view origin) {
  const auto role_byte = static_cast<std::uint8_t>(role);
  const std::string name = room.hex();
  return canonical("iterm2-relay-join", {ByteView(&kTranscriptVersion, 1), ByteView(&role_byte, 1), nonce,
                                         bytes_of(name), bytes_of(origin)});
}

Bytes delete_transcript(ByteView challenge, const RoomName& room, std::string_view origin) {
  const std::string name = room.hex();
  return canonical("iterm2-relay-delete",
                   {ByteView(&kTranscriptVersion, 1), challenge, bytes_of(name), bytes_of(origin)});
}

Sha256 client_data_hash(ByteView challenge, std::string_view origin) {
  return sha256(canonical("iterm2-relay-attest", {challenge, bytes_of(origin)}));
}

}  // namespace tandem::protocol
