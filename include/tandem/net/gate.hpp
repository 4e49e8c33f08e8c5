// The entry gate: the rows of 1-wire 1.3 in order, for a parsed request head. The first that fails answers, and nothing
// later is charged or read. Row 8 (a body too large) is judged here where the head declares it, else by who reads the
// body.
#pragma once

#include "tandem/core/close_reason.hpp"
#include "tandem/net/http_head.hpp"
#include "tandem/relay/relay.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace tandem::net {

struct GatePassed {
  RoomName room;
  bool upgrade = false;
  relay::Endpoint endpoint = relay::Endpoint::attest_challenge;  // where it is no upgrade
  std::string_view websocket_key;                                // where it is one
};

struct GateRefused {
  RejectReason reason;
  std::uint16_t status;
  std::string_view body;
  std::string fields;  // further header lines, each with its CR LF
};

[[nodiscard]] std::variant<GatePassed, GateRefused> pass_gate(const RequestHead& head, const ClientKey& client,
                                                              relay::Relay& relay, Now now);

}  // namespace tandem::net
