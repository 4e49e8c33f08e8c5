// Every way a socket or request is turned away, as fixed lists: the wire's texts, and the same in snake_case for
// metrics (1-wire 1.3, 1.4, 1.8; 3-operations 3.5).
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

// Who ended a WebSocket first.
enum class Initiator : std::uint8_t { relay, client, network };
[[nodiscard]] std::string_view to_string(Initiator i) noexcept;

// Why a WebSocket ended. The wire text of a relay's close is close_text(); its code close_code().
enum class CloseReason : std::uint8_t {
  // by the relay
  displaced,             // 1000 displaced
  pairing_cycle_cap,     // 1000 pairing cycle cap
  room_deleted,          // 1000 room deleted
  room_expired,          // 1000 room expired
  peer_gone,             // 1001 peer gone
  server_shutting_down,  // 1001 server shutting down
  shedding,              // 1001 shedding
  protocol_error,        // 1002, no reason text
  invalid_utf8,          // 1007, no reason text
  bad_hello,             // 1008 bad hello
  bad_proof,             // 1008 <the refusal's text>, and so on for every refused proof
  rate_limited,          // 1008 rate limited
  signature_required,
  bad_signature,
  ticket_required,
  bad_ticket,
  mac_offline,
  slot_occupied,
  too_many_pending,      // 1008 too many pending
  admission_timeout,     // 1008 admission timeout
  slow_consumer,         // 1008 slow consumer
  frame_rate_exceeded,   // 1008 frame rate exceeded
  daily_quota_exceeded,  // 1008 daily quota exceeded
  frame_too_large,       // 1009 frame too large
  internal_error,        // 1011
  reshard,               // 4421 reshard [<owner>]
  keepalive_timeout,     // the socket is cut without a close frame
  // by the client or the network
  client_close,   // a close frame of the client's own
  end_of_stream,  // FIN or close_notify without a close frame
  reset,          // RST or another transport error
};

// The code that travels for a relay's close; for client_close and below, and keepalive_timeout: 1006.
[[nodiscard]] std::uint16_t close_code(CloseReason r) noexcept;
// The text that travels ("peer gone"); reshard's owner is appended by the caller. Empty where none does.
[[nodiscard]] std::string_view close_text(CloseReason r) noexcept;
// The fixed label value ("peer_gone").
[[nodiscard]] std::string_view label(CloseReason r) noexcept;
inline constexpr int kCloseReasonCount = static_cast<int>(CloseReason::reset) + 1;

// Why the entry gate refused (1-wire 1.3). The body is reject_text().
enum class RejectReason : std::uint8_t {
  forbidden,
  bad_room,
  misdirected,
  not_found,
  method_not_allowed,
  rate_limited,
  too_many_connections,
  capacity,
  too_large,
  timeout,
  bad_request,
};
[[nodiscard]] std::uint16_t reject_status(
    RejectReason r) noexcept;  // 403, 400, 421, 404, 405, 429, 429, 503, 413, 408, 400
[[nodiscard]] std::string_view reject_text(RejectReason r) noexcept;  // "forbidden", "bad room", ...
[[nodiscard]] std::string_view label(
    RejectReason r) noexcept;  // snake_case; not_found and method_not_allowed: "bad_request"
inline constexpr int kRejectReasonCount = static_cast<int>(RejectReason::bad_request) + 1;

// How an endpoint was admitted (3-operations 3.5).
enum class Via : std::uint8_t { signature, ticket, park, open };
[[nodiscard]] std::string_view label(Via v) noexcept;  // "signed", "ticket", "park", "open"

}  // namespace tandem
