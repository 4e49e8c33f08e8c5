// How one attempt of an endpoint ended, and what the client rules make of it (1-wire 1.8, 2-sharding 2.8.2 to 2.8.4).
// Pure functions: one row of the table each. How long to wait is client/backoff.hpp's, unless the row names a time of
// its own.
#pragma once

#include "tandem/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace tandem::client {

// No TCP or TLS connection, or it was gone before any answer came. A map that names nobody counts as one.
struct NoConnection {
  std::string detail;  // for people
};
// An HTTP answer other than the one wanted, to the upgrade or to a POST of the same attempt.
struct Refused {
  std::uint16_t status = 0;
  std::string body;
};
// The WebSocket ended: by a close frame, or without one (1006).
struct Closed {
  std::uint16_t code = 1006;
  std::string reason;
};
using Ending = std::variant<NoConnection, Refused, Closed>;

enum class Next : std::uint8_t {
  same_host,    // try again where it was
  refresh_map,  // fetch the map first, then go where it says, never where a hint says
  give_up,      // nothing that waiting would change
  pair_again,   // the room is gone: the user pairs anew
};

struct Reaction {
  Next next = Next::same_host;
  std::optional<Duration> wait;  // in place of the backoff
  friend bool operator==(const Reaction&, const Reaction&) = default;
};

inline constexpr Duration kQuotaWait = std::chrono::minutes(30);
inline constexpr Duration kDisplacedWait = std::chrono::seconds(60);

[[nodiscard]] Reaction react(const Ending& ending);
[[nodiscard]] bool is_ticket_required(const Ending& ending);  // 1008 `ticket required`: attest, and join again
[[nodiscard]] std::string describe(
    const Ending& ending);  // "closed 1008 mac offline", "HTTP 429", "no connection: ..."

}  // namespace tandem::client
