// Loads a relay on this machine and measures it: what `tandemctl bench` runs. Loopback only, so that nobody loads
// somebody else's relay by a typing error. Every load is bounded in sockets and in time; source addresses of
// 127.0.0.0/8 take turns, so that the limits per client that a relay is configured with are not what is measured.
//
// Blocking. Certificates are not checked: who listens on loopback is us.
#pragma once

#include "tandem/core/time.hpp"

#include <functional>
#include <string>
#include <vector>

namespace tandem::app {

struct BenchOptions {
  std::string host;               // an authority on loopback
  int sockets = 500;              // parked: how many
  int rooms = 4;                  // throughput, hostile and soak: pairings
  int attackers = 2000;           // hostile: connections at a time
  int connections = 20000;        // churn: in all
  int frame_bytes = 16 * 1024;    // throughput
  int messages_per_second = 450;  // throughput: of each room, below limits.messages_per_second; 0: as fast as it goes
  int concurrency = 16;           // handshakes: at a time; also how many connect at once elsewhere
  double run_seconds = 5;         // of each load
  std::string admin;  // soak and churn: the relay's admin listener, to see whether it comes back to its baseline
  std::string map;    // soak: the map file that the relay reads, to be published anew now and then; empty: not
};

struct BenchFigure {
  std::string name;  // "messages_per_second"
  double value = 0;
};
struct BenchRow {
  std::string load;  // "parked"
  std::vector<BenchFigure> figures;
  std::vector<std::string> faults;  // empty: the load ran as it should
  [[nodiscard]] bool ok() const noexcept { return faults.empty(); }
};

// Called some times a second with the share that is done, 0 to 1.
using BenchProgress = std::function<void(double done)>;

[[nodiscard]] BenchRow bench_parked(const BenchOptions& options, const BenchProgress& progress);
[[nodiscard]] BenchRow bench_throughput(const BenchOptions& options, const BenchProgress& progress);
[[nodiscard]] BenchRow bench_handshakes(const BenchOptions& options, const BenchProgress& progress);
// Streams keep at least nine tenths of their throughput, and lose nothing, while hostile connections come and go.
[[nodiscard]] BenchRow bench_hostile(const BenchOptions& options, const BenchProgress& progress);
// Connections that come, are admitted and go: after all of them the relay is hardly larger than after the first 1,000.
[[nodiscard]] BenchRow bench_churn(const BenchOptions& options, const BenchProgress& progress);
// Hours where asked for: pairings that come, talk, stall, drop, and all reconnect at once now and then.
[[nodiscard]] BenchRow bench_soak(const BenchOptions& options, const BenchProgress& progress);

[[nodiscard]] bool is_loopback_host(const std::string& host);

}  // namespace tandem::app
