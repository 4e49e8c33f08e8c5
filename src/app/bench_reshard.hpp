// Moves rooms away from a relay and back by writing the map file that it polls, as an operator's publishing tool would.
#pragma once

#include "tandem/client/ending.hpp"
#include "tandem/core/random.hpp"
#include "tandem/shard/map.hpp"

#include <chrono>
#include <string>

namespace tandem::app {

class Resharder {
 public:
  // An empty path: moves nothing. Throws std::runtime_error where the file holds no map.
  Resharder(std::string path, const std::string& relay_host, std::uint64_t seed);

  void advance();  // called often: publishes when it is time to
  void finish();   // gives the relay the whole ring
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  // A room that moved, or is not the relay's just now: what a move does.
  [[nodiscard]] bool explains(const client::Ending& ending) const;

 private:
  using Clock = std::chrono::steady_clock;
  void publish(std::uint16_t first_given_away);  // 0: none

  std::string path_, relay_host_;
  SeededRandom random_;
  std::uint64_t version_ = 0, count_ = 0;
  bool whole_ = true;
  Clock::time_point next_at_{};
};

}  // namespace tandem::app
