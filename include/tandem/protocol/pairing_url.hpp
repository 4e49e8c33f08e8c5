// The URL that carries a pairing from the mac's screen to the phone (2-sharding 2.1; read as 2b-map-tool's `owner`
// demands):
//   iterm2://pair?v=1&proto=Noise_XK_25519_ChaChaPoly_BLAKE2s&rs=<b64url>&pid=<id>&relay=<https origin>     direct
//   iterm2://pair?v=2&proto=...&rs=...&pid=...&resolver=<https URL of the shard map>                        resolved
#pragma once

#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"

#include <array>
#include <string>
#include <string_view>
#include <variant>

namespace tandem::protocol {

inline constexpr std::string_view kNoiseProtocol = "Noise_XK_25519_ChaChaPoly_BLAKE2s";

struct PairingUrl {
  std::array<std::uint8_t, 32> rs{};  // the mac's X25519 public key
  std::string pid;                    // decoded UTF-8
  bool resolved = false;              // v=2
  std::string where;                  // v=1: the relay's https origin; v=2: the map's URL

  [[nodiscard]] RoomName room() const;
  // v=1 only: the authority behind "https://".
  [[nodiscard]] std::string host() const;
};

// What is wrong with a URL: the parameter ("rs"; "url" where it is none of ours) and its value, for one line to a
// person.
struct PairingUrlFault {
  std::string parameter;
  std::string value;
  std::string message;
};

[[nodiscard]] std::string build_pairing_url(const PairingUrl& url);
// Refuses: another scheme or action; a missing, repeated or wrong v, proto, rs or pid; relay= with v=2 or resolver=
// with v=1; a relay that is not an https origin; a resolver that is no https, http or file URL (2.3 decides which may
// be fetched); bad percent-encoding. Unknown parameters are ignored.
[[nodiscard]] std::variant<PairingUrl, PairingUrlFault> parse_pairing_url(std::string_view text);

}  // namespace tandem::protocol
