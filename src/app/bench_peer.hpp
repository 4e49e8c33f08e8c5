// What the loads of a bench share: the loop, addresses to come from, rooms that the relay owns, and a count of what
// went wrong.
#pragma once

#include "tandem/app/bench.hpp"
#include "tandem/client/endpoint.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

namespace tandem::app {

class BenchRun {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{60};  // for what should take a moment

  BenchRun(const BenchOptions& options, const BenchProgress& progress);

  // Opens an endpoint in `room`, from the next source address.
  [[nodiscard]] std::shared_ptr<client::Endpoint> open(Role role, const RoomName& room,
                                                       client::Endpoint::Handlers handlers);
  [[nodiscard]] RoomName fresh_room();
  // Where the relay is, from the next source address; a plain TLS connection to it.
  [[nodiscard]] client::Destination next_destination();
  void skip_sources(std::uint64_t sockets) noexcept { opened_ += sockets; }  // another run comes from those
  [[nodiscard]] const client::TlsTrust& trust() const noexcept { return trust_; }

  // A room was refused: true where another one may be this relay's (421), so that the caller tries again.
  [[nodiscard]] bool is_misplaced(const client::Ending& ending);
  void fault(const std::string& what) {
    ++faults_[what];
    ++fault_count_;
  }
  void fault(const client::Ending& ending) { fault(client::describe(ending)); }
  [[nodiscard]] bool is_hopeless() const noexcept { return fault_count_ >= 200; }  // trying again would only spin
  [[nodiscard]] std::vector<std::string> faults() const;                           // "3 x closed 1008 mac offline"

  // Runs the loop until the condition holds or the time is over; false: the time was over. `share` of the bar is for
  // this.
  template <class Condition>
  bool run_until(Clock::time_point end, Condition condition) {
    while (!condition()) {
      if (Clock::now() >= end) return false;
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(20));
      tick();
    }
    return true;
  }
  void run_for(std::chrono::milliseconds time) {
    (void)run_until(Clock::now() + time, [] { return false; });
  }

  void expect(std::chrono::duration<double> whole) { whole_ = whole; }  // for the progress bar
  [[nodiscard]] boost::asio::io_context& loop() noexcept { return loop_; }

 private:
  void tick();

  const BenchOptions& options_;
  const BenchProgress& progress_;
  boost::asio::io_context loop_;
  client::TlsTrust trust_;
  std::map<std::string, int> faults_;
  std::uint64_t opened_ = 0;
  int misplaced_ = 0, fault_count_ = 0;
  Clock::time_point began_ = Clock::now(), shown_{};
  std::chrono::duration<double> whole_{1};
};

// What the relay says of itself on its admin listener; sums over labels. Nothing where it does not answer.
struct RelayFigures {
  double descriptors = 0, resident_bytes = 0, sockets = 0, rooms = 0;
};
[[nodiscard]] std::optional<RelayFigures> read_relay(const std::string& admin);

// Sorted percentiles in milliseconds.
[[nodiscard]] double percentile_ms(std::vector<Duration>& values, double fraction);

}  // namespace tandem::app
