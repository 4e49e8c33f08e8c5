// A fleet in one process under virtual time: the pure half of several relays, the endpoints of several pairings and
// some strangers, a map published on edges that lag, stores that fail, hosts that are killed. Everything is drawn from
// one seed, so a run that fails replays exactly. After every event the invariants are checked; the first that is broken
// ends the run.
//
// Each host's shell is modelled: effects are performed on tables of connections, frames go only where a splice says.
// Messages of one connection stay in order; connections overtake each other, stall and break.
#pragma once

#include "tandem/core/random.hpp"
#include "tandem/protocol/derivation.hpp"
#include "tandem/relay/relay.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

namespace tandem::sim {

// Bugs that can be planted between a relay and its shell, one for each invariant: every one must be found.
enum class Plant : std::uint8_t {
  none,
  keep_displaced,  // a displaced socket is not closed: two macs in a room
  cross_splice,    // a phone is spliced to another room's mac
  admit_refused,   // a refused socket is admitted
  hide_map,        // the relay does not hear of a map that its host adopted
  mute_close,      // a close without a reason
  leak_socket,     // the relay does not hear that a socket ended
  lose_loads,      // the store never answers
  drain_early,     // the relay waits a tenth of the drain delay
  drain_fast,      // the relay evicts a hundred times too fast
  weak_random,     // nonces and secrets repeat
  forget_stored,   // the store says it wrote, and did not
};
inline constexpr int kPlantCount = static_cast<int>(Plant::forget_stored) + 1;
[[nodiscard]] std::string_view name(Plant p);

struct Report {
  std::string broken;  // the invariant, and what was seen; empty: all held
  std::uint64_t events = 0;
  Duration virtual_time{};
  std::uint64_t admissions = 0, frames = 0, evictions = 0, kills = 0, maps = 0, registrations = 0;
};

[[nodiscard]] Report run(std::uint64_t seed, std::uint64_t events, Plant plant, bool trace = false);

// ---------------------------------------------------------------- the parts

struct Broken {
  std::string what;
};

struct Pairing {
  RoomName room;
  Ed25519Seed seed{};
  bool registered = false;  // the endpoints know that joins must be signed
};

// One WebSocket, both ends of it. Its client is a pairing's endpoint, or a stranger (endpoint < 0).
struct Connection {
  SocketId id;
  int host = 0;
  std::uint64_t life = 0;  // of the host's process
  int endpoint = -1;
  RoomName room;
  ClientKey client;
  // the shell's end
  bool open = true, admitted = false, deaf = false;  // deaf: what the client sends is lost
  Role role = Role::mac;
  room::Meter* meter = nullptr;
  SocketId peer;
  int given_to_core = 0;
  std::deque<std::string> held;  // messages behind an undecided proof
  // the client's end
  bool client_open = true;
  TimePoint last_up{}, last_down{};  // delivery times, to keep order
};

struct Endpoint {
  int pairing = 0;
  Role role = Role::mac;
  ClientKey client;
  std::shared_ptr<Connection> connection;
  int failures = 0;
  bool admitted = false, retrying = false;
  std::string ticket, token;
  std::uint64_t newest_map = 0;
};

struct Host;
class Sim;

struct StoredHost {  // what survives a kill
  std::map<RoomName, relay::StoredRoom> rooms;
  std::set<RoomName> unsaved;  // of these, what was written while the disk failed: lost by a kill
  std::optional<MapVersion> floor;
};

struct Host final : Observer {
  int index = 0;
  std::string name;
  bool up = false;
  std::uint64_t life = 0;
  Duration wall_offset{};
  std::unique_ptr<SeededRandom> random;
  std::unique_ptr<relay::Relay> relay;
  std::map<SocketId, std::shared_ptr<Connection>> connections;
  StoredHost store;
  bool store_works = true;
  TimePoint tick_at = kNever;
  // what the invariants know, apart from the relay
  std::shared_ptr<const shard::ShardMap> map;
  std::map<RoomName, Ed25519PublicKey> established;
  std::set<RoomName> stored_no_more;           // of these: their bucket's wait is over, and they are still here
  std::map<std::uint32_t, TimePoint> lost_at;  // bucket: when its owner last changed to somebody else
  std::deque<TimePoint> evictions;
  Sim* sim = nullptr;

  void observe(const Observed& what) override;
  [[nodiscard]] bool has_sockets(const RoomName& room) const;
  void socket_left(const RoomName& room);
};

class Sim {
 public:
  Sim(std::uint64_t seed, Plant plant, bool trace);
  Report run(std::uint64_t events);

 private:
  friend struct Host;
  using Action = std::function<void()>;

  // sim.cpp: time, chance, the run
  void at(TimePoint when, Action action);
  void after(Duration d, Action action) { at(now_ + d, std::move(action)); }
  bool step();
  [[nodiscard]] Duration some(Duration longest);
  [[nodiscard]] bool chance(double p) { return random_.unit() < p; }
  [[nodiscard]] Now now_of(const Host& h) const;
  void fault();
  void publish(bool settle);
  [[nodiscard]] std::shared_ptr<const shard::ShardMap> edge_map();
  void settle_and_check();
  void expect(bool good, const std::string& what) const {
    if (!good) throw Broken{what};
  }

  // hosts.cpp: shells
  void boot(Host& h);
  void kill(Host& h);
  void poll(Host& h, std::uint64_t life);
  void feed(Host& h, const relay::Event& event);
  void feed_map(Host& h, const std::shared_ptr<const shard::ShardMap>& map);
  void tick(Host& h);
  void perform(Host& h, relay::Effects effects);
  void perform_one(Host& h, relay::Effect& effect);
  void close(Host& h, const relay::effect::Close& e);
  void check(Host& h);
  std::shared_ptr<Connection> upgrade(Host& h, const RoomName& room, const ClientKey& client, int endpoint);
  void to_core(Host& h, Connection& c, const std::string& text);
  void deliver_up(const std::shared_ptr<Connection>& c, std::string text);
  void end_up(const std::shared_ptr<Connection>& c);
  using OnAnswer = std::function<void(std::uint16_t status, const std::string& body)>;
  void post(Host& h, const RoomName& room, relay::Endpoint endpoint, const std::string& body, OnAnswer then);

  // clients.cpp: endpoints and strangers
  void connect(int endpoint);
  void retry(int endpoint);
  void on_message(const std::shared_ptr<Connection>& c, const std::string& text);
  void on_end(std::shared_ptr<Connection> c, CloseReason reason);
  void send_up(const std::shared_ptr<Connection>& c, std::string text);
  void send_down(const std::shared_ptr<Connection>& c, std::string text);
  void send_end_down(const std::shared_ptr<Connection>& c, CloseReason reason);
  void hang_up(std::shared_ptr<Connection> c);
  void attest(int endpoint, int host);
  void register_key(int endpoint, int host, const std::string& token);
  void chatter(int endpoint);
  void stranger();

  std::uint64_t seed_;
  Plant plant_;
  bool trace_, quiet_ = false, leaving_ = false, attested_ = false;
  SeededRandom random_;
  TimePoint now_{std::chrono::hours(1)};
  struct Item {
    TimePoint when;
    std::uint64_t order;
    std::shared_ptr<Action> action;
    friend bool operator>(const Item& a, const Item& b) {
      return std::pair(a.when, a.order) > std::pair(b.when, b.order);
    }
  };
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue_;
  std::uint64_t order_ = 0, next_socket_ = 0, next_request_ = 0;
  relay::Settings settings_;
  std::vector<std::shared_ptr<const shard::ShardMap>> published_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Pairing> pairings_;
  std::vector<Endpoint> endpoints_;
  std::map<RequestId, OnAnswer> requests_;
  std::set<std::string> nonces_;
  Report report_;
};

}  // namespace tandem::sim
