// What a pairing's secrets and names become: room, verifier, and the bytes that are signed (1-wire 1.1). Pinned by
// vectors.
#pragma once

#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"

#include <string_view>

namespace tandem::protocol {

using Nonce = std::array<std::uint8_t, 32>;  // of a join, or the challenge of a request

// rs: the mac's X25519 key, 32 bytes. pid: the pairing id, UTF-8, may be empty.
[[nodiscard]] RoomName room_name(ByteView rs, std::string_view pid);

// The Ed25519 seed both endpoints derive from the room's secret; its public key is the room's verifier.
[[nodiscard]] Ed25519Seed auth_seed(ByteView room_secret);

// origin: "https://" and the provisioned hostname, never what a client says.
[[nodiscard]] Bytes join_transcript(Role role, ByteView nonce, const RoomName& room, std::string_view origin);
[[nodiscard]] Bytes delete_transcript(ByteView challenge, const RoomName& room, std::string_view origin);
// What an attestation or an assertion must have been made for.
[[nodiscard]] Sha256 client_data_hash(ByteView challenge, std::string_view origin);

}  // namespace tandem::protocol
