// The loads of a few seconds: parked sockets, throughput, handshakes.
#include "app/bench_streams.hpp"

#include <utility>

namespace tandem::app {
namespace {

using client::Ending;
using client::Endpoint;
using Clock = BenchRun::Clock;
using std::chrono::duration;

// ---- parked

class Parked {
 public:
  Parked(BenchRun& run, int wanted, int at_once) : run_(run), wanted_(wanted), at_once_(at_once) {}

  bool open_all() {
    const auto began = Clock::now();
    fill();
    const bool all = run_.run_until(began + BenchRun::kPatience, [this] { return done_ == wanted_; });
    opening_ = Clock::now() - began;
    return all;
  }
  int admitted() const { return admitted_; }
  int lost() const { return lost_; }
  double open_seconds() const { return opening_.count(); }
  std::vector<Duration>& times() { return times_; }
  void close_all() {
    for (const auto& endpoint : endpoints_) endpoint->close(1000, "");
  }

 private:
  void fill() {
    while (started_ < wanted_ && started_ - done_ < at_once_) {
      ++started_;
      open_one();
    }
  }

  void open_one() {
    const auto began = Clock::now();
    const std::size_t index = endpoints_.size();
    was_admitted_.push_back(false);
    endpoints_.push_back(run_.open(Role::mac, run_.fresh_room(),
                                   {.admitted =
                                        [this, began, index](const std::string&) {
                                          was_admitted_[index] = true;
                                          times_.push_back(Clock::now() - began);
                                          ++admitted_;
                                          ++done_;
                                          fill();
                                        },
                                    .message = nullptr,
                                    .ended = [this, index](const Ending& ending) { ended(index, ending); }}));
  }

  void ended(std::size_t index, const Ending& ending) {
    if (was_admitted_[index]) {
      ++lost_;
      return run_.fault(ending);
    }
    if (run_.is_misplaced(ending)) return open_one();
    run_.fault(ending);
    ++done_;
    fill();
  }

  BenchRun& run_;
  int wanted_, at_once_, started_ = 0, done_ = 0, admitted_ = 0, lost_ = 0;
  duration<double> opening_{};
  std::vector<std::shared_ptr<Endpoint>> endpoints_;
  std::vector<bool> was_admitted_;
  std::vector<Duration> times_;
};

// ---- handshakes: TLS, upgrade and a mac's admission, then away

class Handshakes {
 public:
  Handshakes(BenchRun& run, int at_once) : run_(run), endpoints_(static_cast<std::size_t>(at_once)) {}

  void run_for(duration<double> time) {
    const auto began = Clock::now();
    for (std::size_t slot = 0; slot < endpoints_.size(); ++slot) open(slot);
    run_.run_for(std::chrono::duration_cast<std::chrono::milliseconds>(time));
    over_ = true;
    spent_ = Clock::now() - began;
    for (const auto& endpoint : endpoints_)
      if (endpoint) endpoint->abort();
  }
  double per_second() const { return static_cast<double>(times_.size()) / spent_.count(); }
  std::vector<Duration>& times() { return times_; }

 private:
  void open(std::size_t slot) {
    if (over_ || run_.is_hopeless()) return;
    const auto began = Clock::now();
    endpoints_[slot] = run_.open(Role::mac, run_.fresh_room(),
                                 {.admitted =
                                      [this, slot, began](const std::string&) {
                                        times_.push_back(Clock::now() - began);
                                        endpoints_[slot]->close(1000, "");
                                        open(slot);
                                      },
                                  .message = nullptr,
                                  .ended =
                                      [this, slot](const Ending& ending) {
                                        if (!run_.is_misplaced(ending)) run_.fault(ending);
                                        open(slot);
                                      }});
  }

  BenchRun& run_;
  std::vector<std::shared_ptr<Endpoint>> endpoints_;
  bool over_ = false;
  duration<double> spent_{1};
  std::vector<Duration> times_;
};

}  // namespace

BenchRow bench_parked(const BenchOptions& options, const BenchProgress& progress) {
  BenchRun run(options, progress);
  run.expect(duration<double>(options.run_seconds + options.sockets / 1000.0));
  Parked parked(run, options.sockets, options.concurrency);
  if (!parked.open_all()) run.fault("not every socket was admitted in time");
  run.run_for(std::chrono::milliseconds(static_cast<long>(options.run_seconds * 1000)));
  parked.close_all();
  run.run_for(std::chrono::milliseconds(100));
  return {"parked",
          {{"sockets", static_cast<double>(parked.admitted())},
           {"opened_per_second", parked.admitted() / parked.open_seconds()},
           {"admission_p50_ms", percentile_ms(parked.times(), 0.5)},
           {"admission_p99_ms", percentile_ms(parked.times(), 0.99)},
           {"lost", static_cast<double>(parked.lost())}},
          run.faults()};
}

BenchRow bench_throughput(const BenchOptions& options, const BenchProgress& progress) {
  BenchRun run(options, progress);
  run.expect(duration<double>(options.run_seconds));
  Streams streams(run, options);
  if (!streams.pair_all()) run.fault("not every room was paired in time");
  Streams::Measured sent = streams.send_for(duration<double>(options.run_seconds));
  const double per_second = streams.finish() / sent.seconds;
  run.run_for(std::chrono::milliseconds(100));
  return {"throughput",
          {{"rooms", static_cast<double>(options.rooms)},
           {"mib_per_second", per_second * options.frame_bytes / (1024 * 1024)},
           {"messages_per_second", per_second},
           {"latency_p50_ms", percentile_ms(sent.latencies, 0.5)},
           {"latency_p99_ms", percentile_ms(sent.latencies, 0.99)}},
          run.faults()};
}

BenchRow bench_handshakes(const BenchOptions& options, const BenchProgress& progress) {
  BenchRun run(options, progress);
  run.expect(duration<double>(options.run_seconds));
  Handshakes load(run, options.concurrency);
  load.run_for(duration<double>(options.run_seconds));
  run.run_for(std::chrono::milliseconds(100));
  return {"handshakes",
          {{"per_second", load.per_second()},
           {"p50_ms", percentile_ms(load.times(), 0.5)},
           {"p99_ms", percentile_ms(load.times(), 0.99)}},
          run.faults()};
}

}  // namespace tandem::app
