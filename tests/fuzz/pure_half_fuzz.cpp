// Drives the whole pure half with fuzzed events, effects that are answered or not, and time that jumps. What must hold:
// the relay stays consistent, effects name only sockets that are open and requests that wait, no socket is admitted
// twice, a room has at most one of each role.
#include "tandem/core/random.hpp"
#include "tandem/protocol/derivation.hpp"
#include "tandem/relay/relay.hpp"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace tandem;
using namespace tandem::relay;

void require(bool good) {
  if (!good) std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool empty() const { return at_ == end_; }
  std::uint8_t byte() { return empty() ? 0 : *at_++; }
  std::uint8_t below(std::uint8_t n) { return static_cast<std::uint8_t>(byte() % n); }
  std::string text() {
    const std::size_t wanted = byte();  // first: what is left depends on it
    const std::size_t n = std::min(wanted, static_cast<std::size_t>(end_ - at_));
    std::string s(reinterpret_cast<const char*>(at_), n);
    at_ += n;
    return s;
  }

 private:
  const std::uint8_t *at_, *end_;
};

class Shell {
 public:
  explicit Shell(Input& in) : in_(in), relay_(settings(in), random_, observer_) {}

  void run() {
    perform(relay_.advance(now_));
    // Built with sanitizers the relay checks itself behind every call, but for the times when most of the ring drains:
    // looking at all of it takes long.
    for (unsigned steps = 1; !in_.empty(); ++steps) {
      step();
      if (steps % 32 == 0) require(relay_.is_consistent());
    }
    require(relay_.is_consistent());
  }

 private:
  struct Socket {
    RoomName room;
    bool admitted = false;
    Role role = Role::mac;
    room::Meter* meter = nullptr;
  };

  static Settings settings(Input& in) {
    const std::uint8_t flags = in.byte();
    Settings s;
    s.hostname = "a.example";
    s.resolved = flags & 1;
    s.attest_required = flags & 2;
    s.attest_configured = flags & 4;
    s.app_id = "TEAMID.example";
    s.rendezvous = flags & 8 ? Duration(seconds(2)) : Duration::zero();
    s.meter.bytes_per_window = flags & 16 ? 5000 : UINT64_MAX;
    s.meter.messages_per_second = flags & 32 ? 20 : 500;
    s.established_idle = flags & 64 ? Duration(seconds(60)) : Duration(std::chrono::hours(720));
    if (flags & 128) s.rooms = 2;
    s.eviction_rate = 0.5;
    return s;
  }

  RoomName room() {
    std::array<std::uint8_t, 32> d{};
    d[0] = in_.below(4);
    d[31] = in_.below(3);
    return RoomName(d);
  }
  SocketId socket() {
    if (sockets_.empty()) return SocketId{in_.byte()};
    auto it = sockets_.begin();
    std::advance(it, in_.below(static_cast<std::uint8_t>(std::min<std::size_t>(sockets_.size(), 255))));
    return it->first;
  }

  void step() {
    switch (in_.below(16)) {
      case 0:
      case 1: {
        const RoomName r = room();
        const ClientKey client{{4, 1, 2, 3, in_.below(3)}};
        const Charge c = relay_.charge(RequestKind::upgrade, r, client, now_);
        if (c.refused && in_.below(4) != 0) return;
        const SocketId id{++last_socket_};
        sockets_[id].room = r;
        return feed(event::SocketOpened{id, r, client});
      }
      case 2: return say(R"({"v":1,"role":"mac"})");
      case 3: return say(in_.below(2) ? R"({"v":1,"role":"phone"})" : R"({"v":1,"role":"phone","nonDisplacing":true})");
      case 4: return say("{}");
      case 5: return say(in_.text());
      case 6: {
        const SocketId s = socket();
        sockets_.erase(s);
        return feed(event::SocketEnded{s});
      }
      case 7: {
        const auto it = sockets_.find(socket());
        if (it == sockets_.end() || !it->second.meter) return;
        const room::Verdict v = it->second.meter->account(in_.byte() * 16u, in_.byte(), now_.mono);
        if (v != room::Verdict::ok) feed(event::LimitCrossed{it->first, v});
        return;
      }
      case 8: return post();
      case 9: return pass();
      case 10: return answer();
      case 11: return map();
      case 12: return feed(event::PressureSampled{static_cast<double>(in_.below(100))});
      case 13: {
        if (waiting_.empty()) return;
        const RequestId id = *waiting_.begin();
        waiting_.erase(waiting_.begin());
        return feed(event::RequestGone{id});
      }
      case 14: {
        relay_.count_egress(in_.byte());
        static_cast<void>(relay_.explain(room(), now_));
        static_cast<void>(relay_.snapshot(now_));
        return;
      }
      default: {
        if (in_.below(8) == 0) return feed(event::ShutdownBegun{});
        Settings s = settings(in_);
        s.resolved = relay_.snapshot(now_).resolved;
        return feed(event::SettingsChanged{s});
      }
    }
  }

  void say(const std::string& text) { feed(event::MessageReceived{socket(), text}); }

  void post() {
    const RequestId id{++last_request_};
    waiting_.insert(id);
    std::string body = in_.text();
    switch (in_.below(4)) {
      case 0: break;
      case 1:
        body = R"({"registrationToken":")" + token_ + R"(","verifier":")" + base64_encode(ed25519_public_key(seed_)) +
               R"(","challenge":")" + challenge_ + R"(","assertion":"AAAA"})";
        break;
      case 2: {
        const RoomName r = room();
        const auto c = base64_decode(challenge_);
        const auto signature =
            ed25519_sign(seed_, protocol::delete_transcript(c ? *c : Bytes(), r, "https://a.example"));
        body = R"({"challenge":")" + challenge_ + R"(","signature":")" + base64_encode(signature) + R"("})";
        return feed(event::RequestReceived{id, r, Endpoint::delete_, body});
      }
      default: body = R"({"challenge":")" + challenge_ + R"(","attestationObject":"AAAA"})";
    }
    feed(event::RequestReceived{id, room(), static_cast<Endpoint>(in_.below(4)), body});
  }

  void pass() {
    constexpr std::array<std::int64_t, 8> kMilliseconds{1, 100, 999, 2000, 15000, 60000, 300000, 86400000};
    const TimePoint end = now_.mono + milliseconds(kMilliseconds[in_.below(8)]);
    for (int i = 0; i < 100 && relay_.next_deadline() <= end; ++i) {
      const TimePoint due = std::max(now_.mono, relay_.next_deadline());
      move_to(due);
      perform(relay_.advance(now_));
      require(relay_.next_deadline() > due);  // or the loop would spin
    }
    move_to(end);
    if (in_.below(16) == 0) now_.wall += seconds((in_.byte() - 128) * 100000);
  }
  void move_to(TimePoint t) {
    now_.wall += std::chrono::duration_cast<seconds>(t - now_.mono);
    now_.mono = t;
  }

  void answer() {
    if (answers_.empty()) return;
    const Event e = std::move(answers_.front());
    answers_.erase(answers_.begin());
    feed(e);
  }

  void map() {
    const char* const hosts[] = {"a.example", "b.example", "nobody.invalid", "c.example"};
    std::vector<shard::Range> ranges;
    for (std::uint16_t b = 0; b < 3; ++b) ranges.push_back({b, b, hosts[in_.below(4)]});
    ranges.push_back({3, 65535, hosts[in_.below(4)]});
    auto made = shard::ShardMap::make(MapVersion{in_.byte()}, std::move(ranges));
    feed(event::MapReceived{std::make_shared<shard::ShardMap>(std::get<shard::ShardMap>(std::move(made)))});
  }

  void feed(const Event& e) { perform(relay_.handle(e, now_)); }

  void perform(Effects effects) {
    for (Effect& effect : effects) {
      namespace fx = effect;
      perform_one(effect);
    }
    std::set<std::pair<RoomName, Role>> slots;
    for (const auto& [id, s] : sockets_) {
      if (s.admitted) require(slots.emplace(s.room, s.role).second);
    }
  }

  void perform_one(Effect& effect) {
    if (auto* s = std::get_if<effect::Send>(&effect)) {
      require(sockets_.contains(s->socket) && !sockets_[s->socket].admitted);
      remember(s->text);
    } else if (auto* a = std::get_if<effect::Admit>(&effect)) {
      require(sockets_.contains(a->socket) && !sockets_[a->socket].admitted);
      Socket& socket = sockets_[a->socket];
      // The one it displaces is closed by the very next effects; the slots are checked after all of them.
      socket.admitted = true;
      socket.role = a->role;
      socket.meter = a->meter;
    } else if (auto* sp = std::get_if<effect::Splice>(&effect)) {
      require(sockets_.contains(sp->mac) && sockets_.contains(sp->phone));
      require(sockets_[sp->mac].room == sockets_[sp->phone].room);
    } else if (auto* c = std::get_if<effect::Close>(&effect)) {
      require(sockets_.erase(c->socket) == 1 && !c->text.empty() && c->text.size() <= 123);
    } else if (auto* r = std::get_if<effect::Reply>(&effect)) {
      require(waiting_.erase(r->request) == 1);
      remember(r->body);
    } else if (auto* l = std::get_if<effect::LoadRoom>(&effect)) {
      std::optional<StoredRoom> stored;
      if (in_.below(3) == 0) stored = StoredRoom{ed25519_public_key(seed_), std::nullopt, now_.wall};
      answers_.emplace_back(event::RoomLoaded{l->room, stored});
    } else if (auto* st = std::get_if<effect::StoreRoom>(&effect)) {
      answers_.emplace_back(event::Stored{st->id, in_.below(2) == 0});
    } else if (auto* w = std::get_if<effect::WipeRoom>(&effect)) {
      if (w->id != 0) answers_.emplace_back(event::Stored{w->id, in_.below(2) == 0});
    } else if (auto* v = std::get_if<effect::VerifyAttestation>(&effect)) {
      std::optional<AttestedKey> key;
      if (in_.below(4) != 0) key.emplace().id[0] = in_.below(2);
      answers_.emplace_back(event::AttestationVerified{v->request, key, "why"});
    }
  }

  // Challenges and tokens come back in later requests.
  void remember(const std::string& text) {
    const auto value = [&](const std::string& key) {
      const auto at = text.find("\"" + key + "\":\"");
      if (at == std::string::npos) return std::string();
      const auto begin = at + key.size() + 4;
      return text.substr(begin, text.find('"', begin) - begin);
    };
    if (const auto c = value("challenge"); !c.empty()) challenge_ = c;
    if (const auto t = value("registrationToken"); !t.empty()) token_ = t;
  }

  Input& in_;
  SeededRandom random_{1};
  NullObserver observer_;
  Now now_{TimePoint(std::chrono::hours(1)), WallTime{} + std::chrono::hours(24 * 20000)};
  Relay relay_;
  std::map<SocketId, Socket> sockets_;
  std::set<RequestId> waiting_;
  std::vector<Event> answers_;
  Ed25519Seed seed_{7};
  std::string challenge_, token_;
  std::uint64_t last_socket_ = 0, last_request_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  Shell(in).run();
  return 0;
}
