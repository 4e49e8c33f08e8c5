// Counts what every room reports and says it in Prometheus's text format: the families of 3-operations 3.5, all present
// at zero, every label from a fixed list, no room, tag or address anywhere.
//
// Counters and histograms move with what is observed; gauges are read from the source at each scrape. The cost of a
// scrape depends on the number of series (a few hundred), never on rooms or sockets. Single-threaded, on the loop.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/core/time.hpp"
#include "tandem/relay/relay.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tandem::metrics {

// What a scrape reads.
struct Sample {
  relay::Snapshot relay;
  struct ByRole {
    std::uint64_t mac = 0, phone = 0;
  };
  ByRole relayed_bytes, relayed_messages;  // of admitted endpoints: payload, whole messages
  std::uint64_t handshaking = 0;           // connections without a WebSocket yet, in TLS or HTTP
  std::uint64_t connections = 0;  // all that are open: process_open_fds is estimated from them where there are many
  Duration map_age{};             // since the last successful poll; zero in direct mode
  std::optional<WallTime> certificate_expiry;
};

class Metrics final : public Observer {
 public:
  using Source = std::function<Sample()>;
  explicit Metrics(Source source);
  ~Metrics() override;

  void observe(const Observed& what) override;
  [[nodiscard]] std::string scrape() const;  // text format 0.0.4

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::metrics
