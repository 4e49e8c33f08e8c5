// Pairings whose phone sends to its mac, at a rate or as fast as it goes: from the phone to the mac, as a screen goes
// the other way but costs the same. Every message is stamped and numbered, and checked when it arrives.
#pragma once

#include "app/bench_peer.hpp"

#include <memory>
#include <vector>

namespace tandem::app {

class Streams {
 public:
  using Clock = BenchRun::Clock;
  struct Measured {
    double seconds = 0, messages = 0;  // messages: that arrived
    std::vector<Duration> latencies;
  };

  Streams(BenchRun& run, const BenchOptions& options);
  [[nodiscard]] bool pair_all();
  [[nodiscard]] Measured send_for(std::chrono::duration<double> time);
  // What is on its way arrives, or it is a fault; then all say goodbye. -> how many messages have arrived in all
  [[nodiscard]] double finish();

 private:
  struct Pair {
    std::shared_ptr<client::Endpoint> mac, phone;
    bool mac_in = false, phone_in = false, over = false;
    double credit = 0;
    std::uint64_t sent = 0, received = 0;
  };

  void park(Pair& pair);
  void join(Pair& pair, const RoomName& room);
  void ended(Pair& pair, const client::Ending& ending);
  void pump();
  void send(Pair& pair);
  void received(Pair& pair, ByteView bytes);
  [[nodiscard]] double count() const;

  BenchRun& run_;
  const BenchOptions& options_;
  Bytes payload_;
  std::vector<Pair> pairs_;
  Clock::time_point last_{};
  std::vector<Duration> latencies_;
};

}  // namespace tandem::app
