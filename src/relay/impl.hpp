// The relay's inside, shared by its source files; see relay.hpp for what it decides. One file per concern: gate.cpp,
// sockets.cpp, endpoints.cpp, sharding.cpp, shedding.cpp, looking.cpp; relay.cpp dispatches.
#pragma once

#include "key_ring.hpp"
#include "tandem/protocol/endpoint.hpp"
#include "tandem/relay/egress_month.hpp"
#include "tandem/relay/relay.hpp"
#include "tandem/relay/shedder.hpp"
#include "tandem/room/quota_memory.hpp"
#include "tandem/room/rate_windows.hpp"
#include "tandem/room/registry.hpp"
#include "tandem/room/steady_wall.hpp"
#include "tandem/shard/drain_queue.hpp"
#include "tandem/shard/ownership.hpp"

#include <bitset>
#include <deque>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tandem::relay {

using room::Entry;
using room::RoomState;

struct Relay::Impl final : room::Outbox {
  Impl(Settings settings, RandomSource& random, Observer& observer);

  // ---- a dispatch
  void begin(Now now);
  void dispatch(const Event& event);
  void advance();
  [[nodiscard]] Effects finish();
  [[nodiscard]] TimePoint next_deadline() const;
  template <class T>
  void emit(T&& effect) {
    effects.emplace_back(std::forward<T>(effect));
  }
  [[nodiscard]] Entry& room_of(const RoomName& room);  // created where absent, with its quota where one runs
  [[nodiscard]] room::Turn turn_for(const RoomName& room);
  // Calls into a room, then settles it. The entry may be gone afterwards.
  template <class F>
  void in_room(Entry& entry, F&& f) {
    room::Turn turn = turn_for(entry.room.name());
    f(entry.room, turn);
    settle(entry);
  }
  void settle(Entry& entry);
  void adopt_settings(Settings s);

  // ---- room::Outbox
  void send(SocketId socket, std::string text) override;
  void admit(SocketId socket, Role role, room::Meter& meter) override;
  void splice(SocketId mac, SocketId phone) override;
  void close(SocketId socket, CloseReason reason) override;
  void touch(const RoomName& room, WallTime at) override;
  void wipe(const RoomName& room) override;

  // ---- gate.cpp
  [[nodiscard]] bool owns(const RoomName& room) const { return ownership.owns(room.bucket()); }
  [[nodiscard]] Charge charge(RequestKind kind, const RoomName& room, const ClientKey& client);

  // ---- sockets.cpp
  void on(const event::SocketOpened& e);
  void on(const event::MessageReceived& e);
  void on(const event::SocketEnded& e);
  void on(const event::LimitCrossed& e);
  void on(const event::RoomLoaded& e);
  void on(const event::ShutdownBegun& e);
  void ensure_loaded(Entry& entry);
  void forget_socket(SocketId socket);
  [[nodiscard]] std::string close_reason_text(CloseReason reason, const RoomName& room) const;

  // ---- endpoints.cpp
  void on(const event::RequestReceived& e);
  void on(const event::RequestGone& e);
  void on(const event::AttestationVerified& e);
  void on(const event::Stored& e);
  struct Request {
    RoomName room;
    Endpoint endpoint = Endpoint::register_;
    protocol::EndpointFields fields;
    Ed25519PublicKey verifier{};  // of /register
  };
  void answer(RequestId id, Endpoint endpoint, protocol::Answer a, std::string body, std::uint32_t retry_after = 0);
  void misdirect(RequestId id, Endpoint endpoint, const RoomName& room);
  void refuse(RequestId id, Endpoint endpoint, protocol::Answer a, std::string_view detail = {});
  void challenge(RequestId id, const RoomName& room);
  void attest(RequestId id, const RoomName& room, const protocol::EndpointFields& fields);
  void reject_attestation(RequestId id, std::string_view why);
  void wait_for_load(RequestId id, Request request);
  void serve_waiting(Entry& entry);
  void refuse_waiting(const RoomName& room);  // the bucket is lost
  // Requests wait for the store and the worker no longer than settings.request.
  void expect_answer(RequestId id) { expected.emplace_back(now.mono, id); }
  [[nodiscard]] bool is_expected(RequestId id) const;
  [[nodiscard]] std::optional<Endpoint> abandon(RequestId id);  // nobody waits for it any more
  void advance_requests();
  void register_verifier(RequestId id, Entry& entry, const Request& request);
  void delete_room(RequestId id, Entry& entry, const Request& request);
  [[nodiscard]] bool spend_challenge(Entry& entry, const std::string& text, Bytes& challenge);

  // ---- sharding.cpp
  void on(const event::FloorLoaded& e);
  void on(const event::MapReceived& e);
  void relinquish(Bucket bucket);
  void reacquire(Bucket bucket);
  void advance_drain();
  void evict(Entry& entry);
  void forget(Entry& entry);  // the room moved: nothing of it stays here
  void end_drain_if_empty();
  void wipe_foreign_buckets();

  // ---- shedding.cpp
  void on(const event::PressureSampled& e);
  void on(const event::EgressLoaded& e);
  void on(const event::SettingsChanged& e);
  void advance_shedding();
  void advance_housekeeping();
  void watch_egress();

  // ---- looking.cpp
  [[nodiscard]] Snapshot snapshot(Now at) const;
  [[nodiscard]] Explanation explain(const RoomName& room, Now at) const;
  [[nodiscard]] bool is_consistent() const;

  Settings settings;
  room::Policy policy;
  RandomSource& random;
  Observer& observer;

  Effects effects;
  Now now{};
  room::SteadyWall believed;
  bool stopping = false;

  room::Registry registry;
  room::QuotaMemory quotas;
  struct Socket {
    Entry* entry = nullptr;
    ClientKey client;
  };
  std::unordered_map<SocketId, Socket> sockets;
  std::unordered_map<ClientKey, std::uint32_t, KeyedHash> sockets_of_client;
  room::RateWindows upgrade_rate, attest_rate;

  std::unordered_map<RoomName, std::uint32_t, KeyedHash> loads;  // answers of the store that are still to come, by room
  std::unordered_map<RequestId, Request> waiting;                // for the store's answer
  std::unordered_map<RoomName, std::vector<RequestId>, KeyedHash> waiting_in_room;  // in the order they came
  std::unordered_map<RequestId, RoomName> attesting;                                // on the worker
  struct Write {
    RequestId request;  // 0: nobody waits, or not any more
    RoomName room;
    Endpoint endpoint = Endpoint::register_;
  };
  std::unordered_map<std::uint64_t, Write> writes;  // by id, until the store answers
  std::unordered_map<RequestId, std::uint64_t> write_of_request;
  std::deque<std::pair<TimePoint, RequestId>> expected;  // since when; in front none that was answered
  std::uint64_t last_write_id = 0;
  KeyRing keys;

  shard::Ownership ownership;
  shard::DrainQueue drain;
  std::unordered_map<std::uint64_t, Entry*> draining_rooms;  // by serial
  std::bitset<kBucketCount> wait_ended;  // relinquished buckets whose stored rooms are forgotten already
  bool drain_active = false;
  std::uint64_t evicted_in_drain = 0;
  MapOutcome map_outcome;
  TimePoint wipe_foreign_at = kNever;

  Shedder shedder;
  struct Victim {
    TimePoint idle_since;
    std::uint64_t serial;
    RoomName room;
    friend bool operator>(const Victim& a, const Victim& b) {
      return std::pair(a.idle_since, a.serial) > std::pair(b.idle_since, b.serial);
    }
  };
  std::priority_queue<Victim, std::vector<Victim>, std::greater<>>
      victims;  // the longest idle first; checked when taken

  EgressMonth egress;
  std::uint64_t egress_stored = 0;
  TimePoint next_egress_check{}, next_sweep{};
};

}  // namespace tandem::relay
