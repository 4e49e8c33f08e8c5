// The one thread beside the loop that does what may take long: SQLite and the certificate chains of App Attest. Takes
// the relay's effects that concern the store, and gives back the relay's events that answer them.
//
// Decides in which order: what was asked of the store comes before attestations, changes of one moment share one
// commit, and a change that someone waits for is committed at once. Owns no room. Where there is no state file, the
// store is memory and is answered without a hop to the thread.
//
// All public functions are for the loop's thread. `post` and the clock are called from both threads; everything else
// that the worker calls is called on the loop's thread alone, and never from inside a call of the worker's but for
// start().
#pragma once

#include "tandem/config/config.hpp"
#include "tandem/core/observer.hpp"
#include "tandem/net/clock.hpp"
#include "tandem/protocol/attest.hpp"
#include "tandem/relay/effect.hpp"
#include "tandem/relay/event.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::app {

struct WorkerSettings {
  std::optional<std::string> state_path;  // none: memory only
  std::string app_id;                     // empty: every attestation is rejected
  protocol::AttestEnvironment environment = protocol::AttestEnvironment::production;
  std::optional<std::string> root_ca;  // a file of PEM certificates; none: Apple's root
};

[[nodiscard]] WorkerSettings worker_settings(const config::Config& config);

class Worker {
 public:
  // Attestations that wait are bounded; past it a new one is refused as busy.
  static constexpr std::size_t kWaitingAttestations = 1024;
  static constexpr std::size_t kWaitingAttestationBytes = 32 * 1024 * 1024;

  using Post = std::function<void(std::function<void()>)>;  // runs a function on the loop's thread, soon
  using Deliver = std::function<void(relay::Event)>;        // an answer, for Relay::handle
  using Note = std::function<void(const std::string&)>;     // one line for the log: the disk works again
  using Clock = std::function<Now()>;

  // observer: gets observed::StateError; outlives the worker.
  Worker(WorkerSettings settings, Observer& observer, Post post, Deliver deliver, Note recovered = {},
         Clock clock = net::read_clock);
  ~Worker();  // as stop()
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Opens the store, delivers FloorLoaded and EgressLoaded at once, and starts the thread. A line where the process
  // must not start: a state file of a newer schema, a root certificate that cannot be read.
  [[nodiscard]] std::optional<std::string> start(Now now);

  // Takes the effect where it is the worker's, and says whether it was.
  bool take(relay::Effect&& effect);

  // Could these be taken over? A line where not. state_path needs a restart and is not looked at, here and in update().
  [[nodiscard]] std::optional<std::string> check(const WorkerSettings& settings) const;
  void update(const WorkerSettings& settings);  // for attestations from now on; where check() failed: nothing changes

  // Writes everything that was asked for and ends the thread. Answers that were not delivered by then never are.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tandem::app
