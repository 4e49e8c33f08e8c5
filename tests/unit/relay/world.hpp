// A relay, the endpoints that talk to it, a store and a clock, without a socket: effects are performed on tables, time
// is jumped to whatever comes next. Every call checks that the relay is consistent.
#pragma once

#include "tandem/core/base64.hpp"
#include "tandem/protocol/admission.hpp"
#include "tandem/protocol/derivation.hpp"
#include "tandem/relay/relay.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::relay::test {

inline const std::string kHost = "relay1.example";
inline const std::string kOrigin = "https://relay1.example";

class Recorder final : public Observer {
 public:
  void observe(const Observed& what) override { all.push_back(what); }
  template <class T>
  [[nodiscard]] std::vector<T> of() const {
    std::vector<T> found;
    for (const Observed& o : all) {
      if (const T* t = std::get_if<T>(&o)) found.push_back(*t);
    }
    return found;
  }
  std::vector<Observed> all;
};

// What one client has seen.
struct Client {
  RoomName room;
  std::vector<std::string> messages;
  std::optional<CloseReason> closed;
  std::string close_text;
  bool admitted = false;
  Role role = Role::mac;
  room::Meter* meter = nullptr;
  SocketId peer;
  TimePoint closed_at{};

  [[nodiscard]] nlohmann::json last() const {
    return messages.empty() ? nlohmann::json() : nlohmann::json::parse(messages.back());
  }
  [[nodiscard]] bool open() const { return !closed; }
};

struct Answer {
  std::uint16_t status = 0;
  nlohmann::json body;
  std::uint32_t retry_after = 0;
  std::string owner = {};
  [[nodiscard]] std::string error() const { return body.is_object() ? body.value("error", "") : std::string(); }
};

inline RoomName room_in(std::uint16_t bucket, std::uint32_t n = 0) {
  std::array<std::uint8_t, 32> d{};
  for (int i = 0; i < 4; ++i) d[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(n >> (8 * i));
  d[4] = 0x5a;
  d[30] = static_cast<std::uint8_t>(bucket >> 8);
  d[31] = static_cast<std::uint8_t>(bucket);
  return RoomName(d);
}

struct JoinKey {
  explicit JoinKey(std::uint8_t n = 1) : seed(protocol::auth_seed(Bytes(32, n))) {}
  [[nodiscard]] Ed25519PublicKey verifier() const { return ed25519_public_key(seed); }
  [[nodiscard]] std::string verifier_b64() const { return base64_encode(verifier()); }
  [[nodiscard]] std::string join(Role role, ByteView nonce, const RoomName& room) const {
    return base64_encode(ed25519_sign(seed, protocol::join_transcript(role, nonce, room, kOrigin)));
  }
  [[nodiscard]] std::string deletion(ByteView challenge, const RoomName& room) const {
    return base64_encode(ed25519_sign(seed, protocol::delete_transcript(challenge, room, kOrigin)));
  }
  Ed25519Seed seed;
};

inline Settings open_settings() {
  Settings s;
  s.hostname = kHost;
  s.attest_required = false;
  s.rendezvous = Duration::zero();
  return s;
}
inline Settings attested_settings() {
  Settings s = open_settings();
  s.attest_required = true;
  s.attest_configured = true;
  s.app_id = "TEAMID.example";
  return s;
}

class World {
 public:
  explicit World(Settings s = open_settings()) : settings(std::move(s)), relay(settings, random, seen) {
    static_cast<void>(flush(relay.advance(now)));
  }

  // ---- time
  void pass(Duration d) {
    const TimePoint end = now.mono + d;
    while (relay.next_deadline() <= end) {
      move_to(std::max(now.mono, relay.next_deadline()));
      flush(relay.advance(now));
    }
    move_to(end);
  }
  void move_to(TimePoint t) {
    wall_fine += t - now.mono;
    now.mono = t;
    now.wall = std::chrono::floor<seconds>(wall_fine);
  }
  void step_wall(Duration d) {
    wall_fine += d;
    now.wall = std::chrono::floor<seconds>(wall_fine);
  }

  // ---- sockets
  SocketId open(const RoomName& room, ClientKey client = {{4, 10, 0, 0, 1}}) {
    const SocketId id{++last_socket};
    clients[id].room = room;
    feed(event::SocketOpened{id, room, client});
    return id;
  }
  void say(SocketId id, std::string_view text) { feed(event::MessageReceived{id, text}); }
  Bytes hello(SocketId id, Role role, bool non_displacing = false) {
    say(id, protocol::hello_message(role, non_displacing));
    const auto answer = clients[id].last();
    return answer.contains("nonce") ? base64_decode(answer["nonce"].get<std::string>()).value() : Bytes();
  }
  SocketId join(const RoomName& room, Role role, const protocol::Proof& proof = {}, bool non_displacing = false) {
    const SocketId id = open(room);
    hello(id, role, non_displacing);
    say(id, protocol::proof_message(proof));
    return id;
  }
  SocketId join_signed(const RoomName& room, Role role, const JoinKey& key) {
    const SocketId id = open(room);
    const Bytes nonce = hello(id, role);
    say(id, protocol::proof_message({key.join(role, nonce, room), std::nullopt}));
    return id;
  }
  void leave(SocketId id) { feed(event::SocketEnded{id}); }
  // A whole message of an admitted socket; what the meter says goes back to the relay.
  room::Verdict traffic(SocketId id, std::uint64_t bytes, std::uint32_t messages = 1) {
    const room::Verdict v = clients[id].meter->account(bytes, messages, now.mono);
    if (v != room::Verdict::ok) feed(event::LimitCrossed{id, v});
    return v;
  }

  // ---- requests
  RequestId post(const RoomName& room, Endpoint endpoint, const std::string& body) {
    const RequestId id{++last_request};
    feed(event::RequestReceived{id, room, endpoint, body});
    return id;
  }
  Answer ask(const RoomName& room, Endpoint endpoint, const nlohmann::json& body) {
    return answers[post(room, endpoint, body.dump())];
  }
  Bytes challenge(const RoomName& room) {
    const Answer a = ask(room, Endpoint::attest_challenge, nlohmann::json::object());
    return a.status == 200 ? base64_decode(a.body["challenge"].get<std::string>()).value() : Bytes();
  }
  Answer register_key(const RoomName& room, const std::string& token, const JoinKey& key) {
    return ask(room, Endpoint::register_, {{"registrationToken", token}, {"verifier", key.verifier_b64()}});
  }
  Answer delete_room(const RoomName& room, const JoinKey& key) {
    const Bytes c = challenge(room);
    return ask(room, Endpoint::delete_, {{"challenge", base64_encode(c)}, {"signature", key.deletion(c, room)}});
  }
  // A pairing in open mode, established by `key`.
  std::pair<SocketId, SocketId> establish(const RoomName& room, const JoinKey& key) {
    const SocketId mac = join(room, Role::mac), phone = join(room, Role::phone);
    const Answer a = register_key(room, clients[phone].last()["registrationToken"], key);
    EXPECT_EQ(a.status, 200) << a.body;
    return {mac, phone};
  }

  // ---- maps: hosts of [0, split) and [split, 65536)
  void map(std::uint64_t version, std::uint32_t split, const std::string& low, const std::string& high) {
    std::vector<shard::Range> ranges;
    if (split > 0) ranges.push_back({0, static_cast<std::uint16_t>(split - 1), low});
    if (split < kBucketCount) ranges.push_back({static_cast<std::uint16_t>(split), 65535, high});
    auto made = shard::ShardMap::make(MapVersion{version}, std::move(ranges));
    feed(event::MapReceived{std::make_shared<shard::ShardMap>(std::get<shard::ShardMap>(std::move(made)))});
  }

  // ---- the machinery
  void feed(const Event& event) {
    flush(relay.handle(event, now));
    while (!from_store.empty() && !store_is_slow) {
      const Event next = std::move(from_store.front());
      from_store.pop_front();
      flush(relay.handle(next, now));
    }
  }
  void answer_from_store() {
    const bool slow = std::exchange(store_is_slow, false);
    feed(event::SocketEnded{SocketId{UINT64_MAX}});
    store_is_slow = slow;
  }
  void flush(Effects effects) {
    EXPECT_TRUE(relay.is_consistent());
    for (Effect& e : effects) {
      std::visit([this](auto& x) { perform(x); }, e);
      log.push_back(std::move(e));
    }
  }
  template <class T>
  [[nodiscard]] std::vector<T> effects_of() const {
    std::vector<T> found;
    for (const Effect& e : log) {
      if (const T* t = std::get_if<T>(&e)) found.push_back(*t);
    }
    return found;
  }

  void perform(effect::Send& e) {
    EXPECT_TRUE(clients.at(e.socket).open() && !clients.at(e.socket).admitted);
    clients.at(e.socket).messages.push_back(e.text);
  }
  void perform(effect::Admit& e) {
    Client& c = clients.at(e.socket);
    EXPECT_TRUE(c.open() && !c.admitted);
    c.admitted = true;
    c.role = e.role;
    c.meter = e.meter;
  }
  void perform(effect::Splice& e) {
    for (const auto& [a, b] : {std::pair(e.mac, e.phone), std::pair(e.phone, e.mac)}) {
      EXPECT_TRUE(clients.at(a).open() && clients.at(a).admitted);
      clients.at(a).peer = b;
    }
    EXPECT_EQ(clients.at(e.mac).room, clients.at(e.phone).room);
  }
  void perform(effect::Unsplice& e) { clients.at(e.socket).peer = {}; }
  void perform(effect::Close& e) {
    Client& c = clients.at(e.socket);
    EXPECT_TRUE(c.open());
    c.closed = e.reason;
    c.close_text = e.text;
    c.meter = nullptr;
    c.closed_at = now.mono;
  }
  void perform(effect::Reply& e) {
    EXPECT_FALSE(answers.contains(e.request));
    answers[e.request] = {e.status, nlohmann::json::parse(e.body, nullptr, false), e.retry_after_seconds, e.owner};
  }
  void perform(effect::LoadRoom& e) {
    const auto it = stored.find(e.room);
    from_store.push_back(
        event::RoomLoaded{e.room, it == stored.end() ? std::nullopt : std::optional<StoredRoom>(it->second)});
  }
  void perform(effect::StoreRoom& e) {
    stored[e.room] = e.stored;  // where it does not work this is its memory
    if (e.counter) counters[*e.stored.registrant] = *e.counter;
    from_store.push_back(event::Stored{e.id, store_works});
  }
  void perform(effect::WipeRoom& e) {
    stored.erase(e.room);
    if (e.id != 0) from_store.push_back(event::Stored{e.id, store_works});
  }
  void perform(effect::WipeBuckets& e) {
    for (const Bucket b : e.buckets) std::erase_if(stored, [&](const auto& kv) { return kv.first.bucket() == b; });
  }
  void perform(effect::TouchRoom& e) {
    if (stored.contains(e.room)) stored[e.room].last_activity = e.at;
  }
  void perform(effect::StoreCounter&) {}
  void perform(effect::StoreFloor& e) { floor = e.floor; }
  void perform(effect::StoreEgress&) {}
  void perform(effect::SweepIdle& e) {
    std::erase_if(stored, [&](const auto& kv) { return kv.second.last_activity < e.before; });
  }
  void perform(effect::VerifyAttestation& e) { attestations.push_back(e); }

  Settings settings;
  SeededRandom random{42};
  Recorder seen;
  Now now{TimePoint{} + std::chrono::hours(1), WallTime{} + std::chrono::hours(24 * 365 * 56)};
  std::chrono::sys_time<Duration> wall_fine{now.wall};
  Relay relay;

  std::map<SocketId, Client> clients;
  std::map<RequestId, Answer> answers;
  std::vector<Effect> log;
  std::map<RoomName, StoredRoom> stored;
  std::map<KeyId, std::uint32_t> counters;
  std::deque<Event> from_store;
  std::vector<effect::VerifyAttestation> attestations;
  MapVersion floor;
  bool store_works = true, store_is_slow = false;
  std::uint64_t last_socket = 0, last_request = 0;
};

inline void expect_closed(const char* file, int line, World& w, SocketId id, CloseReason why) {
  const testing::ScopedTrace trace(file, line, "");
  const Client& c = w.clients.at(id);
  ASSERT_TRUE(c.closed) << "still open, " << (c.messages.empty() ? "nothing said" : c.messages.back());
  EXPECT_EQ(label(*c.closed), label(why));
}
inline void expect_refused(const char* file, int line, World& w, SocketId id, CloseReason why) {
  const testing::ScopedTrace trace(file, line, "");
  expect_closed(file, line, w, id, why);
  const Client& c = w.clients.at(id);
  ASSERT_FALSE(c.messages.empty());
  EXPECT_EQ(c.messages.back(), "{\"ok\":false,\"error\":\"" + std::string(tandem::close_text(why)) + "\"}");
  EXPECT_FALSE(c.admitted);
}
#define EXPECT_CLOSED(world, id, why) expect_closed(__FILE__, __LINE__, world, id, why)
#define EXPECT_REFUSED(world, id, why) expect_refused(__FILE__, __LINE__, world, id, why)

}  // namespace tandem::relay::test
