// What the wire contract fixes about every room and no operator can change (1-wire 1.4, 1.6).
#pragma once

#include "tandem/core/time.hpp"

#include <cstddef>

namespace tandem::room {

inline constexpr std::size_t kPendingPerRoom = 4;  // un-admitted sockets; a fifth closes the oldest
inline constexpr int kPairingCycles = 8;           // phone admissions of one mac park in a pairing room
inline constexpr std::size_t kProofsPerWindow = 40;
inline constexpr Duration kProofWindow = seconds(10);
inline constexpr Duration kSecretLifetime = std::chrono::minutes(5);  // challenges, tickets, registration tokens
inline constexpr std::size_t kSecretsPerRoom = 16;                    // live challenges, tickets, tokens: each

}  // namespace tandem::room
