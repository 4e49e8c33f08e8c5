// A great many connections that come, are admitted and go in every way there is; what the relay keeps of them.
#include "app/bench_peer.hpp"

#include <utility>
#include <vector>

namespace tandem::app {
namespace {

using client::Ending;
using client::Endpoint;
using Clock = BenchRun::Clock;
using std::chrono::duration;
using std::chrono::milliseconds;

constexpr int kFirst = 1000;
constexpr double kGrown = 1.05;
// A room remembers its proofs for ten seconds, and free memory is given back every five; what stays after that counts.
constexpr milliseconds kForgotten{18'000};

class Churn {
 public:
  Churn(BenchRun& run, int at_once) : run_(run), endpoints_(static_cast<std::size_t>(at_once)) {}

  // Until that many connections in all have ended.
  void run_to(int total) {
    total_ = total;
    for (std::size_t slot = 0; slot < endpoints_.size(); ++slot)
      if (!endpoints_[slot]) open(slot);
    (void)run_.run_until(Clock::time_point::max(), [this] { return done_ >= total_ || run_.is_hopeless(); });
  }

 private:
  void open(std::size_t slot) {
    endpoints_[slot] = nullptr;
    if (begun_ >= total_ || run_.is_hopeless()) return;
    ++begun_;
    endpoints_[slot] = run_.open(Role::mac, run_.fresh_room(),
                                 {.admitted = [this, slot](const std::string&) { leave(slot); },
                                  .message = nullptr,
                                  .ended =
                                      [this, slot](const Ending& ending) {
                                        if (!run_.is_misplaced(ending)) run_.fault(ending);
                                        ++done_;
                                        open(slot);
                                      }});
  }

  void leave(std::size_t slot) {
    ++done_;
    if (done_ % 2 == 0)
      endpoints_[slot]->close(1000, "");
    else
      endpoints_[slot]->abort();
    open(slot);
  }

  BenchRun& run_;
  std::vector<std::shared_ptr<Endpoint>> endpoints_;
  int total_ = 0, begun_ = 0, done_ = 0;
};

std::optional<RelayFigures> settled(BenchRun& run, const std::string& admin) {
  run.run_for(kForgotten);
  std::optional<RelayFigures> figures = read_relay(admin);
  for (int tries = 0; tries < 10 && figures && figures->sockets > 0; ++tries) {
    run.run_for(milliseconds(500));
    figures = read_relay(admin);
  }
  return figures;
}

}  // namespace

BenchRow bench_churn(const BenchOptions& options, const BenchProgress& progress) {
  BenchRun run(options, progress);
  run.expect(2 * kForgotten + milliseconds(options.connections));
  Churn churn(run, options.concurrency);
  churn.run_to(kFirst);
  const auto before = settled(run, options.admin);
  const auto began = Clock::now();
  churn.run_to(options.connections);
  const double seconds = duration<double>(Clock::now() - began).count();
  const auto after = settled(run, options.admin);
  BenchRow row{"churn", {{"connections", static_cast<double>(options.connections)}}, {}};
  if (!before || !after) {
    run.fault("the admin listener at " + options.admin + " does not answer");
  } else {
    constexpr double mib = 1024 * 1024;
    const double ratio = after->resident_bytes / before->resident_bytes;
    row.figures.push_back({"per_second", (options.connections - kFirst) / seconds});
    row.figures.push_back({"resident_mib_after_1000", before->resident_bytes / mib});
    row.figures.push_back({"resident_mib_after_all", after->resident_bytes / mib});
    row.figures.push_back({"ratio", ratio});
    if (ratio > kGrown) run.fault("resident memory grew by more than 5 %");
    if (after->descriptors > before->descriptors) run.fault("descriptors leaked");
    if (after->sockets > 0 || after->rooms > 0) run.fault("sockets or rooms left behind");
  }
  row.faults = run.faults();
  return row;
}

}  // namespace tandem::app
