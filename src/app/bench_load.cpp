// The loads of a few seconds: parked sockets, throughput, handshakes.
#include "app/bench_peer.hpp"

#include <cstring>
#include <utility>

namespace tandem::app {
namespace {

using client::Ending;
using client::Endpoint;
using client::Opcode;
using Clock = BenchRun::Clock;
using std::chrono::duration;

constexpr auto kPatience = std::chrono::seconds(60);  // for what should take a moment
constexpr std::size_t kQueueBytes = 256 * 1024;       // unsent, per sender

// ---- parked

class Parked {
 public:
  Parked(BenchRun& run, int wanted, int at_once) : run_(run), wanted_(wanted), at_once_(at_once) {}

  bool open_all() {
    const auto began = Clock::now();
    fill();
    const bool all = run_.run_until(began + kPatience, [this] { return done_ == wanted_; });
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

// ---- throughput: from the phone to the mac, as a screen goes the other way but costs the same

struct Pair {
  std::shared_ptr<Endpoint> mac, phone;
  bool mac_in = false, phone_in = false, over = false;
  double credit = 0;
  std::uint64_t sent = 0, received = 0;
};

class Throughput {
 public:
  Throughput(BenchRun& run, const BenchOptions& options)
      : run_(run), options_(options), payload_(static_cast<std::size_t>(options.frame_bytes)) {
    pairs_.resize(static_cast<std::size_t>(options.rooms));
  }

  bool pair_all() {
    for (Pair& pair : pairs_) park(pair);
    return run_.run_until(Clock::now() + kPatience, [this] {
      for (const Pair& pair : pairs_)
        if (!pair.phone_in && !pair.over) return false;
      return true;
    });
  }

  void send_for(duration<double> time) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    began_ = last_ = Clock::now();
    (void)run_.run_until(end, [this] {
      pump();
      return false;
    });
    sending_ = Clock::now() - began_;
    (void)run_.run_until(Clock::now() + kPatience, [this] {  // what is on its way arrives, or it is a fault
      for (const Pair& pair : pairs_)
        if (!pair.over && pair.received < pair.sent) return false;
      return true;
    });
    for (Pair& pair : pairs_) {
      if (!pair.over && pair.received < pair.sent) run_.fault("messages that never arrived");
      pair.over = true;
      if (pair.phone) pair.phone->close(1000, "");
      if (pair.mac) pair.mac->close(1000, "");
    }
  }

  double messages() const {
    double sum = 0;
    for (const Pair& pair : pairs_) sum += static_cast<double>(pair.received);
    return sum;
  }
  double seconds_sending() const { return sending_.count(); }
  std::vector<Duration>& latencies() { return latencies_; }

 private:
  void park(Pair& pair) {
    const RoomName room = run_.fresh_room();
    pair.mac = run_.open(Role::mac, room,
                         {.admitted =
                              [this, &pair, room](const std::string&) {
                                pair.mac_in = true;
                                join(pair, room);
                              },
                          .message = [this, &pair](Opcode, ByteView bytes) { received(pair, bytes); },
                          .ended =
                              [this, &pair](const Ending& ending) {
                                if (!pair.mac_in && run_.is_misplaced(ending)) return park(pair);
                                ended(pair, ending);
                              }});
  }

  void join(Pair& pair, const RoomName& room) {
    pair.phone = run_.open(Role::phone, room,
                           {.admitted = [&pair](const std::string&) { pair.phone_in = true; },
                            .message = nullptr,
                            .ended = [this, &pair](const Ending& ending) { ended(pair, ending); }});
  }

  void ended(Pair& pair, const Ending& ending) {
    if (std::exchange(pair.over, true)) return;
    const bool wants_ticket = client::is_ticket_required(ending);
    wants_ticket ? run_.fault("the relay demands attestation; set attest.required to false for a bench")
                 : run_.fault(ending);
  }

  void pump() {
    const auto now = Clock::now();
    const double elapsed = duration<double>(now - last_).count();
    last_ = now;
    for (Pair& pair : pairs_) {
      if (pair.over || !pair.phone_in) continue;
      const bool paced = options_.messages_per_second > 0;
      pair.credit = std::min(pair.credit + elapsed * options_.messages_per_second, 50.0);
      while (pair.phone->unsent() < kQueueBytes && (!paced || pair.credit >= 1)) {
        pair.credit -= 1;
        send(pair);
        if (pair.over) break;
      }
    }
  }

  void send(Pair& pair) {
    const auto stamp = Clock::now().time_since_epoch().count();
    std::memcpy(payload_.data(), &stamp, std::min(sizeof stamp, payload_.size()));
    pair.phone->send(Opcode::binary, payload_);
    ++pair.sent;
  }

  void received(Pair& pair, ByteView bytes) {
    Clock::rep stamp = 0;
    if (bytes.size() != payload_.size()) return run_.fault("a message of another size");
    ++pair.received;
    if (bytes.size() < sizeof stamp) return;
    std::memcpy(&stamp, bytes.data(), sizeof stamp);
    latencies_.push_back(Clock::now() - Clock::time_point(Clock::duration(stamp)));
  }

  BenchRun& run_;
  const BenchOptions& options_;
  Bytes payload_;
  std::vector<Pair> pairs_;
  Clock::time_point began_{}, last_{};
  duration<double> sending_{};
  std::vector<Duration> latencies_;
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
  Throughput load(run, options);
  if (!load.pair_all()) run.fault("not every room was paired in time");
  load.send_for(duration<double>(options.run_seconds));
  run.run_for(std::chrono::milliseconds(100));
  const double per_second = load.messages() / load.seconds_sending();
  return {"throughput",
          {{"rooms", static_cast<double>(options.rooms)},
           {"mib_per_second", per_second * options.frame_bytes / (1024 * 1024)},
           {"messages_per_second", per_second},
           {"latency_p50_ms", percentile_ms(load.latencies(), 0.5)},
           {"latency_p99_ms", percentile_ms(load.latencies(), 0.99)}},
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
