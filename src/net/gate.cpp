#include "tandem/net/gate.hpp"

#include "tandem/core/base64.hpp"

#include <optional>

namespace tandem::net {
namespace {

GateRefused refuse(RejectReason reason, std::string fields = {}) {
  return {reason, reject_status(reason), reject_text(reason), std::move(fields)};
}

std::optional<relay::Endpoint> endpoint_of(std::string_view path) noexcept {
  if (path == "/attest/challenge") return relay::Endpoint::attest_challenge;
  if (path == "/attest") return relay::Endpoint::attest;
  if (path == "/register") return relay::Endpoint::register_;
  if (path == "/delete") return relay::Endpoint::delete_;
  return std::nullopt;
}

// The rest of RFC 6455 4.2.1; nothing is charged for a handshake that is none.
std::optional<GateRefused> judge_handshake(const RequestHead& head, std::string_view& key) {
  const GateRefused bad{RejectReason::bad_request, 400, "bad websocket handshake", {}};
  if (!head.has_token("connection", "upgrade")) return bad;
  if (head.single("sec-websocket-version") != std::optional<std::string_view>("13"))
    return GateRefused{RejectReason::bad_request, 426, "websocket version 13 only", "Sec-WebSocket-Version: 13\r\n"};
  const auto given = head.single("sec-websocket-key");
  if (!given) return bad;
  const auto decoded = base64_decode(*given);
  if (!decoded || decoded->size() != 16) return bad;
  key = *given;
  return std::nullopt;
}

}  // namespace

std::variant<GatePassed, GateRefused> pass_gate(const RequestHead& head, const ClientKey& client, relay::Relay& relay,
                                                Now now) {
  GatePassed out;
  out.upgrade = head.upgrade;
  if (head.count("origin") != 0) return refuse(RejectReason::forbidden);  // 1

  const auto name = head.single("x-relay-room");
  const auto room = name ? RoomName::parse(*name) : std::nullopt;
  if (!room) return refuse(RejectReason::bad_room);  // 2
  out.room = *room;

  if (const relay::OwnerCheck owner = relay.check_owner(*room); !owner.ours) {  // 3
    return refuse(RejectReason::misdirected, owner.owner.empty() ? "" : "x-relay-owner: " + owner.owner + "\r\n");
  }

  auto kind = relay::RequestKind::upgrade;
  if (out.upgrade) {
    if (auto bad = judge_handshake(head, out.websocket_key)) return std::move(*bad);
  } else {
    const auto endpoint = endpoint_of(head.path);  // 4
    if (!endpoint) return refuse(RejectReason::not_found);
    if (head.method != "POST") return refuse(RejectReason::method_not_allowed, "Allow: POST\r\n");
    out.endpoint = *endpoint;
    const bool attests = *endpoint == relay::Endpoint::attest || *endpoint == relay::Endpoint::attest_challenge;
    kind = attests ? relay::RequestKind::attest : relay::RequestKind::other_post;
  }

  if (const relay::Charge charge = relay.charge(kind, *room, client, now); charge.refused) {  // 5, 6, 7
    return refuse(*charge.refused, "Retry-After: " + std::to_string(std::max(1u, charge.retry_after_seconds)) + "\r\n");
  }
  if (!out.upgrade && head.content_length.value_or(0) > kMaxBodyBytes) return refuse(RejectReason::too_large);  // 8
  return out;
}

}  // namespace tandem::net
