// What happens to the relay: the inputs of Relay::handle. Plain values; views are only valid during the call.
#pragma once

#include "tandem/core/close_reason.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/relay/settings.hpp"
#include "tandem/room/meter.hpp"
#include "tandem/shard/map.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tandem::relay {

using KeyId = Sha256;  // an App Attest key: SHA-256 of its public point

enum class Endpoint : std::uint8_t { attest_challenge, attest, register_, delete_ };

// What the store keeps of a room (soft state; 3-operations 3.2).
struct StoredRoom {
  Ed25519PublicKey verifier{};
  std::optional<KeyId> registrant;
  WallTime last_activity{};  // of the last signed join or the registration
};

// One verified attestation: the key that signed it.
struct AttestedKey {
  KeyId id{};
  std::array<std::uint8_t, 65> point{};  // uncompressed P-256
  std::uint32_t counter = 0;             // the newest assertion counter the store knows; 0: none
};

namespace event {

// ---- sockets (from net)
struct SocketOpened {
  SocketId socket;
  RoomName room;
  ClientKey client;
};  // after check_owner() and charge() passed
struct MessageReceived {
  SocketId socket;
  std::string_view payload;
};  // whole, of an un-admitted socket, TEXT or BINARY
// The socket ended, or began to end, by its client, the network, or a fault that net found (protocol error, slow
// consumer ...). Net closes the socket itself; the core forgets it and says what follows for its peer.
struct SocketEnded {
  SocketId socket;
};
struct LimitCrossed {
  SocketId socket;
  room::Verdict verdict;
};  // after Meter::account was not ok

// ---- HTTP (from net)
struct RequestReceived {
  RequestId request;
  RoomName room;
  Endpoint endpoint;
  std::string_view body;
};  // the gate passed
struct RequestGone {
  RequestId request;
};  // the client left before the answer

// ---- the store and the worker (from app); each answers one effect
struct RoomLoaded {
  RoomName room;
  std::optional<StoredRoom> stored;
};  // answers effect::LoadRoom
// ok false: not durable; the store answers LoadRoom by it all the same, from memory, while it can.
struct Stored {
  std::uint64_t id;
  bool ok;
};  // answers effects that carry an id
inline constexpr std::string_view kAttestationBusy =
    "busy";  // as `why`: too many wait; the phone is told to come again
struct AttestationVerified {
  RequestId request;
  std::optional<AttestedKey> key;
  std::string_view why;
};  // why: fixed text, if refused
struct FloorLoaded {
  MapVersion floor;
};  // at boot, where the store has one
struct EgressLoaded {
  std::int32_t month;
  std::uint64_t bytes;
};  // at boot; month = year * 12 + month - 1 (UTC)

// ---- the box
struct MapReceived {
  std::shared_ptr<const shard::ShardMap> map;
};  // fetched and valid; adopted or ignored by version
struct PressureSampled {
  double percent;
};  // PSI "some" avg10
struct SettingsChanged {
  Settings settings;
};
struct ShutdownBegun {};  // closes every socket 1001 `server shutting down`

}  // namespace event

using Event = std::variant<event::SocketOpened, event::MessageReceived, event::SocketEnded, event::LimitCrossed,
                           event::RequestReceived, event::RequestGone, event::RoomLoaded, event::Stored,
                           event::AttestationVerified, event::FloorLoaded, event::EgressLoaded, event::MapReceived,
                           event::PressureSampled, event::SettingsChanged, event::ShutdownBegun>;

}  // namespace tandem::relay
