#include "tandem/client/ending.hpp"

#include <string_view>

namespace tandem::client {
namespace {

constexpr std::uint16_t kMisdirected = 421, kTooManyRequests = 429;
constexpr std::uint16_t kNormal = 1000, kPolicy = 1008, kReshard = 4421;

bool is_reshard(const Closed& closed) {
  return closed.code == kReshard || closed.reason == "reshard" || closed.reason.starts_with("reshard ");
}

Reaction react_to(const NoConnection&) { return {Next::refresh_map, {}}; }

Reaction react_to(const Refused& refused) {
  if (refused.status == kMisdirected) return {Next::refresh_map, {}};
  const bool client_error = refused.status >= 400 && refused.status < 500;
  return {client_error && refused.status != kTooManyRequests ? Next::give_up : Next::same_host, {}};
}

Reaction react_to(const Closed& closed) {
  if (is_reshard(closed)) return {Next::refresh_map, {}};
  if (closed.code == kPolicy && closed.reason == "daily quota exceeded") return {Next::same_host, kQuotaWait};
  if (closed.code == kNormal) {
    if (closed.reason == "displaced") return {Next::same_host, kDisplacedWait};
    for (const std::string_view gone : {"room deleted", "room expired", "pairing cycle cap"})
      if (closed.reason == gone) return {Next::pair_again, {}};
  }
  return {};
}

}  // namespace

Reaction react(const Ending& ending) {
  return std::visit([](const auto& how) { return react_to(how); }, ending);
}

bool is_ticket_required(const Ending& ending) {
  const auto* closed = std::get_if<Closed>(&ending);
  return closed != nullptr && closed->code == kPolicy && closed->reason == "ticket required";
}

std::string describe(const Ending& ending) {
  struct Describe {
    std::string operator()(const NoConnection& e) const {
      return e.detail.empty() ? "no connection" : "no connection: " + e.detail;
    }
    std::string operator()(const Refused& e) const {
      return "HTTP " + std::to_string(e.status) + (e.body.empty() ? "" : " " + e.body);
    }
    std::string operator()(const Closed& e) const {
      if (e.code == 1006 && e.reason.empty()) return "the connection ended without a close frame";
      return "closed " + std::to_string(e.code) + (e.reason.empty() ? "" : " " + e.reason);
    }
  };
  return std::visit(Describe{}, ending);
}

}  // namespace tandem::client
