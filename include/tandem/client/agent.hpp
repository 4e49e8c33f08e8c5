// One endpoint's mind: where it connects, when it tries again, when it fetches the map, attests, registers, or gives up
// (2-sharding 2.8). A pure state machine: time and randomness come in, actions go out, and the shell
// (client/device.hpp, or a simulation) performs them after the call. Never calls back.
//
// Every action that belongs to an attempt carries its number; the answers bring it back, and those of an attempt that
// is over are ignored. A live splice is never left on the map's word alone: its host says 4421 when the room moves, so
// that both endpoints leave together.
#pragma once

#include "tandem/client/backoff.hpp"
#include "tandem/client/ending.hpp"
#include "tandem/client/resolver.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/random.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tandem::client {

using Attempt = std::uint64_t;  // 1, 2, 3, ... within one agent

enum class Standing : std::uint8_t { connecting, live, reconnecting, failed, pair_again };

namespace action {
struct Connect {
  Attempt attempt;
  std::string host;
  std::string ticket;
};  // ticket empty: join by signature
struct Abandon {
  Attempt attempt;
};  // drop that socket; nothing it says counts any more
struct FetchMap {};  // never emitted while a fetch is running
struct Attest {
  Attempt attempt;
  std::string host;
};  // challenge, attestation, ticket: from the same host
struct Register {
  Attempt attempt;
  std::string host;
  bool attested;
};  // attested: an assertion has to come along
struct Remember {
  Memory memory;
};  // persist this
struct Show {
  Standing standing;
  std::string why;
};
}  // namespace action
using Action = std::variant<action::Connect, action::Abandon, action::FetchMap, action::Attest, action::Register,
                            action::Remember, action::Show>;
using Actions = std::vector<Action>;

struct AgentSettings {
  Role role = Role::mac;
  RoomName room;
  std::string relay;           // direct mode: the one host; empty: resolved by the map
  Memory memory;               // resolved mode: from an earlier run
  bool first_pairing = false;  // gives up after 60 s
  bool can_attest = false;     // a phone with an attestor
};

class Agent {
 public:
  Agent(AgentSettings settings, RandomSource& random);  // `random` outlives the agent

  [[nodiscard]] Actions start(TimePoint now);
  [[nodiscard]] Actions stop();

  [[nodiscard]] Actions map_fetched(std::shared_ptr<const shard::ShardMap> map, Duration max_age, TimePoint now);
  [[nodiscard]] Actions map_unchanged(Duration max_age, TimePoint now);  // 304
  [[nodiscard]] Actions map_failed(TimePoint now);

  [[nodiscard]] Actions admitted(Attempt attempt, TimePoint now);
  void heard_peer(Attempt attempt);  // a message came through the splice
  [[nodiscard]] Actions ended(Attempt attempt, const Ending& ending, TimePoint now);
  [[nodiscard]] Actions attested(Attempt attempt, std::string ticket, TimePoint now);
  [[nodiscard]] Actions attest_failed(Attempt attempt, const Ending& ending, TimePoint now);
  [[nodiscard]] Actions register_failed(Attempt attempt, const Ending& ending, TimePoint now);

  [[nodiscard]] Actions advance(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;  // kNever where nothing waits

  [[nodiscard]] bool is_live() const noexcept { return phase_ == Phase::live; }
  [[nodiscard]] bool is_stopped() const noexcept { return phase_ == Phase::idle || phase_ == Phase::stopped; }
  [[nodiscard]] int failures() const noexcept { return backoff_.failures(); }
  [[nodiscard]] Attempt attempt() const noexcept { return attempt_; }
  [[nodiscard]] const std::string& host() const noexcept { return host_; }  // of the current attempt
  [[nodiscard]] const Memory& memory() const noexcept { return resolver_.memory(); }

 private:
  enum class Phase : std::uint8_t { idle, waiting, fetching, connecting, attesting, live, stopped };

  [[nodiscard]] bool resolved() const noexcept { return settings_.relay.empty(); }
  [[nodiscard]] bool current(Attempt attempt) const noexcept;
  void go(TimePoint now, bool map_was_asked, Actions& out);
  void connect(const std::string& host, TimePoint now, bool fetch_alongside, Actions& out);
  void fetch(Actions& out);
  void fetch_over(TimePoint now, Actions& out);
  void follow_map(TimePoint now, Actions& out);
  void retry(const Ending& ending, TimePoint now, Actions& out);
  void abandon(Actions& out);
  void finish(Standing standing, std::string why, Actions& out);
  void show(Standing standing, std::string why, Actions& out);

  AgentSettings settings_;
  RandomSource& random_;
  Resolver resolver_;
  Backoff backoff_;
  Phase phase_ = Phase::idle;
  Standing shown_ = Standing::connecting;
  Attempt attempt_ = 0;
  std::string host_;
  bool fetching_ = false;                // a fetch is running
  bool fetch_again_ = false;             // it began before the news that made the map doubtful
  bool fetch_may_move_ = false;          // it rides with the current attempt
  bool need_map_ = false;                // no attempt before a map has been asked for
  std::optional<MapVersion> misled_by_;  // of the map whose host said that the room is not its own
  bool attested_ = false, heard_peer_ = false;
  Backoff register_backoff_;
  TimePoint retry_at_ = kNever, refresh_at_ = kNever, register_at_ = kNever, pairing_ends_at_ = kNever;
};

inline constexpr Duration kFirstPairingPatience = seconds(60);
inline constexpr int kFailuresBeforeReconnecting = 3;
inline constexpr int kRegisterTries = 5;  // then the next admission registers

}  // namespace tandem::client
