// When the map is fetched next, when a poll has failed, and what is said of it (2-sharding 2.3). Pure: time and chance
// come in.
//
// Boot: one attempt at a time, again after 250 ms doubling to 2 s on any failure, until a map is held or boot_timeout
// is over. From then on: a poll each interval (+-10 %, counted from begin to begin) of up to `attempts` attempts; a
// fault that is not retryable ends its poll at once; a poll that takes longer than the interval is followed by the next
// at once, never overlapped. A streak of failing polls is told at its start, once a minute and at its end.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/core/random.hpp"
#include "tandem/core/time.hpp"
#include "tandem/net/http_fetch.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::poll {

struct PollSettings {
  Duration interval = seconds(10);      // shard_map.poll_interval
  Duration fetch_timeout = seconds(3);  // shard_map.fetch_timeout, of one attempt
  Duration boot_timeout = seconds(60);  // shard_map.boot_timeout
  int attempts = 3;                     // shard_map.fetch_attempts
};

// Why one attempt brought no map.
struct Fault {
  std::optional<net::FetchCause>
      cause;                // nothing: the map is older than the newest seen, which is a fault at boot alone
  std::string kind, value;  // of a refused map (2-sharding 2.2): "gap_or_overlap", "101"
  std::string detail;       // one line for people
  bool retryable = true;

  [[nodiscard]] std::string_view cause_label() const noexcept { return cause ? net::label(*cause) : "older"; }
};

// The newest fault, and the streak of failed polls it belongs to.
struct LastFault {
  Fault fault;
  std::uint32_t polls = 0;
  Duration lasted{};  // from the first failed poll's begin; up to now, or to the recovery
};

class PollPlan {
 public:
  PollPlan(const PollSettings& settings, RandomSource& chance, TimePoint now);  // chance outlives the plan

  [[nodiscard]] TimePoint next_step() const noexcept {
    return next_;
  }  // kNever while an attempt runs, or after giving up
  // To be called when next_step() has come: the time the attempt may take. Nothing: boot_timeout is over, there is no
  // map.
  [[nodiscard]] std::optional<Duration> begin_attempt(TimePoint now);

  struct Ended {
    bool booted = false;                             // the first map is held
    std::optional<net::FetchCause> failed;           // this poll failed, to be counted once
    std::uint32_t absorbed_retries = 0;              // of a poll that succeeded
    std::optional<observed::MapFetchStreak> streak;  // a line for the log
  };
  [[nodiscard]] Ended end_attempt(const std::optional<Fault>& fault, TimePoint now);

  [[nodiscard]] bool booting() const noexcept { return booting_; }
  // Since the last success; before any, since construction.
  [[nodiscard]] Duration age(TimePoint now) const noexcept { return now - last_success_; }
  [[nodiscard]] std::optional<LastFault> failing(TimePoint now) const;  // nothing: the last poll succeeded
  [[nodiscard]] std::optional<LastFault> recovered() const;  // the newest fault of the newest streak that is over

 private:
  [[nodiscard]] Duration jittered_interval();
  void fail(const Fault& fault, TimePoint now, Ended& ended);
  void succeed(TimePoint now, Ended& ended);

  PollSettings settings_;
  RandomSource& chance_;
  TimePoint next_, boot_deadline_, last_success_;
  Duration boot_pause_;
  bool booting_ = true;
  int attempt_ = 0;  // attempts begun in this poll
  TimePoint poll_began_{};
  TimePoint streak_began_{}, streak_told_{};
  std::optional<LastFault> streak_, over_;
};

}  // namespace tandem::poll
