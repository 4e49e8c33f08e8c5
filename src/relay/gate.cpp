// Rows 5 to 7 of the entry gate (1-wire 1.3): what a client may ask for, and what the box has room for.
#include "impl.hpp"

namespace tandem::relay {
namespace {

constexpr std::uint32_t kRetryConnections = 10;  // a socket of this client may go any moment
constexpr std::uint32_t kRetryCapacity = 30;

std::uint32_t whole_seconds(Duration d) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, std::chrono::ceil<seconds>(d).count()));
}

}  // namespace

Charge Relay::Impl::charge(RequestKind kind, const RoomName& room, const ClientKey& client) {
  if (kind == RequestKind::other_post) return {};
  const bool upgrade = kind == RequestKind::upgrade;
  if (const auto& limit = upgrade ? settings.upgrades_per_minute : settings.attests_per_minute) {
    const Duration wait = (upgrade ? upgrade_rate : attest_rate).charge(client, *limit, now.mono);
    if (wait > Duration::zero()) return {RejectReason::rate_limited, whole_seconds(wait)};
  }
  if (!upgrade) return {};

  if (settings.sockets_per_client) {
    const auto mine = sockets_of_client.find(client);
    if (mine != sockets_of_client.end() && mine->second >= *settings.sockets_per_client) {
      return {RejectReason::too_many_connections, kRetryConnections};
    }
  }
  if (settings.sockets && sockets.size() >= *settings.sockets) return {RejectReason::capacity, kRetryCapacity};
  const Entry* known = registry.find(room);
  if (known && known->counted != RoomState::empty) return {};
  egress.tick(believed.now(), settings.egress_per_month, observer);
  const bool rooms_full = settings.rooms && registry.census().live_rooms() >= *settings.rooms;
  if (rooms_full || shedder.refuses_rooms() || egress.is_spent(settings.egress_per_month)) {
    return {RejectReason::capacity, kRetryCapacity};
  }
  return {};
}

}  // namespace tandem::relay
