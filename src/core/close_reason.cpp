#include "tandem/core/close_reason.hpp"

#include <array>
#include <cstddef>

namespace tandem {
namespace {

struct Close {
  std::uint16_t code;
  std::string_view text, label;
};

// In the order of the enumeration.
constexpr std::array<Close, kCloseReasonCount> kCloses{{
    {1000, "displaced", "displaced"},
    {1000, "pairing cycle cap", "pairing_cycle_cap"},
    {1000, "room deleted", "room_deleted"},
    {1000, "room expired", "room_expired"},
    {1001, "peer gone", "peer_gone"},
    {1001, "server shutting down", "server_shutting_down"},
    {1001, "shedding", "shedding"},
    {1002, "", "protocol_error"},
    {1007, "", "invalid_utf8"},
    {1008, "bad hello", "bad_hello"},
    {1008, "bad proof", "bad_proof"},
    {1008, "rate limited", "rate_limited"},
    {1008, "signature required", "signature_required"},
    {1008, "bad signature", "bad_signature"},
    {1008, "ticket required", "ticket_required"},
    {1008, "bad ticket", "bad_ticket"},
    {1008, "mac offline", "mac_offline"},
    {1008, "slot occupied", "slot_occupied"},
    {1008, "too many pending", "too_many_pending"},
    {1008, "admission timeout", "admission_timeout"},
    {1008, "slow consumer", "slow_consumer"},
    {1008, "frame rate exceeded", "frame_rate_exceeded"},
    {1008, "daily quota exceeded", "daily_quota_exceeded"},
    {1009, "frame too large", "frame_too_large"},
    {1011, "internal error", "internal_error"},
    {4421, "reshard", "reshard"},
    {1006, "", "keepalive_timeout"},
    {1006, "", "client_close"},
    {1006, "", "end_of_stream"},
    {1006, "", "reset"},
}};

struct Reject {
  std::uint16_t status;
  std::string_view text, label;
};

constexpr std::array<Reject, kRejectReasonCount> kRejects{{
    {403, "forbidden", "forbidden"},
    {400, "bad room", "bad_room"},
    {421, "misdirected", "misdirected"},
    {404, "not found", "bad_request"},
    {405, "method not allowed", "bad_request"},
    {429, "rate limited", "rate_limited"},
    {429, "too many connections", "too_many_connections"},
    {503, "capacity", "capacity"},
    {413, "payload too large", "too_large"},
    {408, "timeout", "timeout"},
    {400, "bad request", "bad_request"},
}};

}  // namespace

std::string_view to_string(Initiator i) noexcept {
  switch (i) {
    case Initiator::relay: return "relay";
    case Initiator::client: return "client";
    case Initiator::network: return "network";
  }
  return "";
}

std::uint16_t close_code(CloseReason r) noexcept { return kCloses[static_cast<std::size_t>(r)].code; }
std::string_view close_text(CloseReason r) noexcept { return kCloses[static_cast<std::size_t>(r)].text; }
std::string_view label(CloseReason r) noexcept { return kCloses[static_cast<std::size_t>(r)].label; }

std::uint16_t reject_status(RejectReason r) noexcept { return kRejects[static_cast<std::size_t>(r)].status; }
std::string_view reject_text(RejectReason r) noexcept { return kRejects[static_cast<std::size_t>(r)].text; }
std::string_view label(RejectReason r) noexcept { return kRejects[static_cast<std::size_t>(r)].label; }

std::string_view label(Via v) noexcept {
  switch (v) {
    case Via::signature: return "signed";
    case Via::ticket: return "ticket";
    case Via::park: return "park";
    case Via::open: return "open";
  }
  return "";
}

}  // namespace tandem
