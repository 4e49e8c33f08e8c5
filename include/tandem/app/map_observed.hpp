// The desired map beside what every host observes, each divergence named and judged against the time convergence allows
// (2-sharding 2.7): for `map status` and the console.
#pragma once

#include "tandem/app/map_error.hpp"
#include "tandem/app/map_options.hpp"
#include "tandem/app/map_store.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem::app {

// stale_map, unreachable, owns_unpublished, draining, identity_mismatch, fetch_failing
struct Divergence {
  std::string code, message;
  double seconds = 0;    // since when it lasts, as far as can be known
  bool overdue = false;  // longer than convergence allows
};

// From a host's /status.
struct HostStatus {
  MapVersion version;
  std::optional<std::uint32_t> buckets;
  std::optional<std::vector<std::pair<std::uint32_t, std::uint32_t>>> ranges;
  std::string hostname;  // empty: not said
  std::uint64_t rooms = 0, draining_rooms = 0, draining_buckets = 0;
  std::optional<double> map_age_seconds, expected_end_seconds;
  std::string fetch_error;  // cause; empty: none
  double fetch_error_seconds = 0;
};
[[nodiscard]] std::optional<HostStatus> parse_status(std::string_view json);

struct HostView {
  std::string host;
  std::uint32_t desired_buckets = 0;
  std::optional<HostStatus> observed;
  std::vector<Divergence> divergences;
};
struct FleetView {
  MapVersion desired;
  double age_seconds = 0;       // since the map was published
  std::vector<HostView> hosts;  // one for every --admin
  bool overdue = false;
};
[[nodiscard]] OrderedJson to_json(const FleetView& view);

class FleetObserver {
 public:
  explicit FleetObserver(const MapOptions& options) : options_(options) {}
  // Asks every host. A divergence lasts since it was first seen by this observer, or, at its first look, since the
  // publish.
  [[nodiscard]] FleetView look(const MapStore& store);

 private:
  void judge(HostView& host, const shard::ShardMap& desired, double age_seconds);
  void diverges(HostView& host, const std::string& code, const std::string& message, double age_seconds,
                std::optional<double> known_seconds = {});

  const MapOptions& options_;
  bool looked_before_ = false;
  std::map<std::pair<std::string, std::string>, double>
      first_seen_;  // (host, code) to seconds of the observer's own clock
  std::map<std::pair<std::string, std::string>, double> seen_now_;
};

}  // namespace tandem::app
