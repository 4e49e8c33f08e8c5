// How long a stop lasts beyond its last socket where systemd holds the listening sockets.
//
// Who is told `server shutting down` comes back within kFirstRetry, each end of a pairing by a throw of its own. A
// phone that the next process serves at once is held for timeouts.rendezvous; where that is shorter than what its mac
// may still take, some phones would be refused `mac offline` and fall into a longer wait. Connections made meanwhile
// lie in the backlog, refused by nobody, so the old process stays until the hold of the next one covers the rest
// (docs/decisions/060).
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/core/time.hpp"
#include "tandem/net/clock.hpp"

#include <cstdint>
#include <variant>

namespace tandem::app {

class StopClock final : public Observer {
 public:
  void observe(const Observed& what) override {
    const auto* ended = std::get_if<observed::SocketEnded>(&what);
    if (ended == nullptr || ended->reason != CloseReason::server_shutting_down) return;
    told_at_ = net::monotonic_now();
    ++told_;
  }

  // Until when to stay; the past where nobody has to be waited for.
  [[nodiscard]] TimePoint stay_until(Duration rendezvous) const {
    const bool holds = rendezvous > Duration::zero();  // who turned the hold off wants no waiting
    if (told_ == 0 || told_ > kBacklog || !holds || rendezvous >= kFirstRetry) return {};
    return told_at_ + (kFirstRetry - rendezvous);
  }

 private:
  static constexpr Duration kFirstRetry = seconds(3);  // 2-sharding 2.8: the longest first wait of a client
  static constexpr std::uint64_t kBacklog = 4096;      // of more, the backlog itself would overflow

  TimePoint told_at_{};
  std::uint64_t told_ = 0;
};

}  // namespace tandem::app
