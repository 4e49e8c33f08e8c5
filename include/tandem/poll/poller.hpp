// Fetches the shard map at boot and ever after, and hands each valid one to the relay (2-sharding 2.3). PollPlan
// decides when; this shell fetches, parses, keeps the ETag of the map that was last accepted, counts, and remembers the
// latest refusal.
//
// A map that cannot be had or is refused changes nothing: the relay keeps what it holds. Single-threaded, on the loop.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/core/random.hpp"
#include "tandem/poll/plan.hpp"
#include "tandem/relay/relay.hpp"
#include "tandem/shard/map.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace boost::asio {
class io_context;
}

namespace tandem::poll {

struct MapSource {
  std::string url;      // shard_map.url, fetched verbatim
  std::string ca_file;  // shard_map.ca_file; empty: the system's CAs
};

// What the relay did with a map.
struct Offered {
  relay::MapOutcome::Kind kind = relay::MapOutcome::Kind::same;
  MapVersion newest_seen;  // names the floor where a boot is refused an older map
};

class Poller {
 public:
  using OnMap = std::function<Offered(std::shared_ptr<const shard::ShardMap>)>;
  // Once: nothing when the first map is held, else why there is none after boot_timeout ("tls: the certificate is
  // refused ...").
  using OnBoot = std::function<void(const std::optional<std::string>& fault)>;

  Poller(boost::asio::io_context& loop, MapSource source, const PollSettings& settings, RandomSource& chance,
         Observer& observer,
         OnMap on_map);  // all references outlive the poller
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void start(OnBoot on_boot);  // the first attempt begins at once; polling goes on after the boot by itself
  void stop();                 // no callback from now on

  [[nodiscard]] Duration age() const;  // since the last successful poll; a 304 is one (shard_map_age_seconds)
  [[nodiscard]] std::optional<LastFault> failing() const;
  [[nodiscard]] std::optional<LastFault> recovered() const;
  [[nodiscard]] std::shared_ptr<const shard::ShardMap> map() const;  // the one last adopted or confirmed; null before

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tandem::poll
