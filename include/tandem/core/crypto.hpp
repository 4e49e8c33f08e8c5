// Thin wrappers over OpenSSL and libsodium: hashes, HKDF, Ed25519. All pure; keys and nonces come in as arguments.
#pragma once

#include "tandem/core/base64.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace tandem {

using Sha256 = std::array<std::uint8_t, 32>;
using Ed25519Seed = std::array<std::uint8_t, 32>;
using Ed25519PublicKey = std::array<std::uint8_t, 32>;  // a room's verifier
using Ed25519Signature = std::array<std::uint8_t, 64>;

[[nodiscard]] Sha256 sha256(ByteView data);
[[nodiscard]] Sha256 hkdf_sha256(ByteView ikm, ByteView salt, ByteView info);  // 32 bytes out

[[nodiscard]] Ed25519PublicKey ed25519_public_key(const Ed25519Seed& seed);
[[nodiscard]] Ed25519Signature ed25519_sign(const Ed25519Seed& seed, ByteView message);
// False for a signature that is not exactly 64 bytes, or not by this key. About 0.1 ms.
[[nodiscard]] bool ed25519_verify(const Ed25519PublicKey& key, ByteView message, ByteView signature);
// A canonical point of the curve, not of low order (1-wire 1.6).
[[nodiscard]] bool ed25519_is_valid_key(const Ed25519PublicKey& key);

// Constant-time comparison of equal-length secrets; false where the lengths differ.
[[nodiscard]] bool equal_secrets(ByteView a, ByteView b) noexcept;

}  // namespace tandem
