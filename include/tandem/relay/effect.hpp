// What must happen: the outputs of Relay::handle and advance, performed by the shell in order, after the call returned.
#pragma once

#include "tandem/core/close_reason.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"
#include "tandem/relay/event.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tandem::relay {

namespace effect {

// ---- sockets (to net)
struct Send {
  SocketId socket;
  std::string text;
};  // one TEXT message to an un-admitted socket
struct Admit {
  SocketId socket;
  Role role;
  room::Meter* meter;
};  // preceded by the Send of its result; see Meter for lifetime
struct Splice {
  SocketId mac, phone;
};  // frames flow from now on; replaces either's former peer
struct Unsplice {
  SocketId socket;
};  // its peer is gone or displaced: what it sends is dropped and counted
// The core has forgotten the socket; net sends what was accepted, then this close, and reports nothing back.
// text: the whole reason on the wire ("reshard relay2.example.com").
struct Close {
  SocketId socket;
  CloseReason reason;
  std::string text;
};

// ---- HTTP (to net)
struct Reply {
  RequestId request;
  std::uint16_t status;
  std::string body;
  std::uint32_t retry_after_seconds;
  std::string owner = {};  // of a 421: whom to ask instead; empty: nobody owns the bucket
};  // JSON, but for a 421, which is the gate's plain text; 0: no header

// ---- the store and the worker (to app)
struct LoadRoom {
  RoomName room;
};  // -> event::RoomLoaded
struct StoreRoom {
  std::uint64_t id;
  RoomName room;
  StoredRoom stored;
  std::optional<std::uint32_t> counter;
};  // durable, then event::Stored; counter: the registrant's, same transaction
struct WipeRoom {
  std::uint64_t id;
  RoomName room;
};  // id 0: no answer wanted
struct WipeBuckets {
  std::vector<Bucket> buckets;
};  // forget every stored room in these: another host owns them and their wait is over (2-sharding 2.5)
struct TouchRoom {
  RoomName room;
  WallTime at;
};  // batched, at most 2 s late
struct StoreCounter {
  std::uint64_t id;
  KeyId key;
  std::uint32_t counter;
};  // id 0: no answer wanted
struct StoreFloor {
  MapVersion floor;
};
struct StoreEgress {
  std::int32_t month;
  std::uint64_t bytes;
};  // batched
struct SweepIdle {
  WallTime before;
  WallTime believed;  // now, by the clock of retention: for what else has an age
};  // forget stored rooms idle since before; those in memory answer for themselves
struct VerifyAttestation {
  RequestId request;
  Sha256 client_data_hash;
  Bytes object;
};  // -> event::AttestationVerified

}  // namespace effect

using Effect = std::variant<effect::Send, effect::Admit, effect::Splice, effect::Unsplice, effect::Close, effect::Reply,
                            effect::LoadRoom, effect::StoreRoom, effect::WipeRoom, effect::WipeBuckets,
                            effect::TouchRoom, effect::StoreCounter, effect::StoreFloor, effect::StoreEgress,
                            effect::SweepIdle, effect::VerifyAttestation>;

using Effects = std::vector<Effect>;

}  // namespace tandem::relay
