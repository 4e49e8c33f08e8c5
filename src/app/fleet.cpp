#include "tandem/app/fleet.hpp"

#include "app/fleet_map_server.hpp"
#include "app/fleet_pairing.hpp"
#include "app/fleet_relay.hpp"
#include "app/fleet_report.hpp"
#include "tandem/app/dev_cert.hpp"
#include "tandem/net/clock.hpp"
#include "tandem/shard/map_edit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <stdexcept>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPatience = std::chrono::minutes(3);  // beyond what a phase should take
constexpr auto kChatInterval = std::chrono::milliseconds(500);

class TemporaryFolder {
 public:
  explicit TemporaryFolder(bool keep) : keep_(keep) {
    std::string pattern = (fs::temp_directory_path() / "tandem-fleet-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!keep_) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  bool keep_;
};

class Fleet {
 public:
  explicit Fleet(const FleetOptions& options)
      : options_(options),
        folder_(options.keep),
        random_(std::random_device{}()),
        map_server_(loop_),
        chat_timer_(loop_) {
    const auto certificate = make_dev_certificate({});
    if (const auto* fault = std::get_if<std::string>(&certificate)) throw std::runtime_error(*fault);
    const std::string fault = write_dev_certificate(std::get<DevCertificate>(certificate), folder_.path());
    if (!fault.empty()) throw std::runtime_error(fault);
    trust_ = client::trust_file(folder_.path() + "/fullchain.pem");
  }

  int run() {
    start_relays();
    start_pairings();
    bool good = true;
    if (wanted("add")) good = add() && good;
    if (wanted("drain")) good = drain() && good;
    if (wanted("kill")) good = kill() && good;
    for (auto& pairing : pairings_) pairing->stop();
    run_for(milliseconds(300));
    if (options_.keep) std::cerr << "left behind: " << folder_.path() << "\n";
    return good ? 0 : 1;
  }

 private:
  bool wanted(const char* phase) const { return options_.only.empty() || options_.only == phase; }

  // ---- the loop, step by step

  template <class Condition>
  bool wait(Duration patience, Condition condition) {
    const TimePoint end = net::monotonic_now() + patience;
    while (!condition()) {
      if (net::monotonic_now() >= end) return false;
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(100));
      for (const auto& relay : relays_)
        if (relay->has_exited())
          throw std::runtime_error(relay->hostname() + " stopped by itself: " + last_line(relay->log_path()));
    }
    return true;
  }
  void run_for(Duration time) {
    const TimePoint end = net::monotonic_now() + time;
    (void)wait(time + seconds(1), [end] { return net::monotonic_now() >= end; });
  }

  void chat_later() {
    chat_timer_.expires_after(kChatInterval / 10);
    chat_timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      for (std::size_t i = turn_; i < pairings_.size(); i += 10) pairings_[i]->chat();
      turn_ = (turn_ + 1) % 10;
      chat_later();
    });
  }

  std::size_t whole() const {
    return static_cast<std::size_t>(
        std::count_if(pairings_.begin(), pairings_.end(), [](const auto& p) { return p->is_whole(); }));
  }
  bool all_whole() const { return whole() == pairings_.size(); }
  std::size_t at(const FleetRelay& relay) const {
    return static_cast<std::size_t>(std::count_if(pairings_.begin(), pairings_.end(),
                                                  [&](const auto& p) { return p->host() == relay.hostname(); }));
  }

  // ---- the map

  void publish(shard::Edited edited) {
    if (const auto* fault = std::get_if<shard::EditFault>(&edited)) throw std::runtime_error(fault->message);
    auto made = shard::ShardMap::make(MapVersion{++version_}, std::get<shard::Ranges>(std::move(edited)));
    map_ = std::make_unique<shard::ShardMap>(std::get<shard::ShardMap>(std::move(made)));
    map_server_.publish(*map_);
  }

  // ---- phases

  void start_relays() {
    for (int number = 1; number <= 3; ++number)
      relays_.push_back(std::make_unique<FleetRelay>(loop_, number, folder_.path(), map_server_.url(), options_));
    std::vector<std::string> hosts = {relays_[0]->hostname(), relays_[1]->hostname()};
    if (options_.only == "drain") hosts.push_back(relays_[2]->hostname());
    publish(shard::init_ranges(hosts));
    for (const auto& relay : relays_) relay->start();
    say("starting three relays; map " + map_server_.url());
    if (!wait(seconds(60), [this] {
          return std::all_of(relays_.begin(), relays_.end(), [](const auto& r) { return r->is_ready(); });
        }))
      throw std::runtime_error("a relay did not get ready: " + last_line(relays_[0]->log_path()));
  }

  void start_pairings() {
    say("pairing " + std::to_string(options_.pairings) + " macs and phones");
    for (int i = 0; i < options_.pairings; ++i)
      pairings_.push_back(std::make_unique<FleetPairing>(loop_, trust_, map_server_.url(), random_, record_, i));
    chat_later();
    const TimePoint began = net::monotonic_now();
    for (std::size_t i = 0; i < pairings_.size(); ++i) {
      pairings_[i]->start();
      if (i % 10 == 9) run_for(milliseconds(50));
    }
    if (!wait(kPatience, [this] { return all_whole(); }))
      throw std::runtime_error("not every pairing came up: " + first_trouble());
    say("all " + std::to_string(pairings_.size()) + " pairings talk after " + in_seconds(net::monotonic_now() - began));
  }

  bool add() {
    return reshard("add a host", [this] { publish(shard::add_host(*map_, relays_[2]->hostname(), {})); });
  }

  bool drain() {
    return reshard("drain a host to empty",
                   [this] { publish(shard::remove_host(*map_, relays_[1]->hostname(), std::nullopt)); });
  }

  // Publishes, and follows it until every loser is empty of what it lost and every pairing talks again.
  bool reshard(const std::string& title, const std::function<void()>& change) {
    const shard::ShardMap before = *map_;
    begin(title);
    change();
    const TimePoint published = net::monotonic_now();
    std::vector<Drain> drains;
    for (const auto& relay : relays_) {
      const std::size_t rooms = moving_from(*relay, before);
      if (rooms > 0) drains.push_back({relay.get(), rooms});
    }
    for (const Drain& drain : drains)
      say(drain.relay->hostname() + " loses " + std::to_string(drain.rooms) + " rooms; from its adoption " +
          in_seconds(predicted(drain.rooms)) + " are predicted");
    const bool converged = wait(kPatience + longest(drains), [&] {
      bool over = true;
      for (Drain& drain : drains) over = follow(drain) && over;
      return over && all_whole();
    });
    FleetPhase phase = end(title, published, converged);
    for (const Drain& drain : drains)
      phase.drains.push_back(
          {drain.relay->hostname(), drain.rooms, predicted(drain.rooms), drain.over_at - drain.adopted_at});
    return report(phase);
  }

  bool kill() {
    begin("kill -9 a host and restart it");
    FleetRelay& victim = *relays_[0];
    const std::size_t rooms = at(victim);
    say("killing " + victim.hostname() + " with " + std::to_string(rooms) + " rooms, back in " +
        in_seconds(Duration(static_cast<Duration::rep>(options_.down_seconds * 1e9))));
    const TimePoint killed = net::monotonic_now();
    victim.kill_hard();
    run_for(Duration(static_cast<Duration::rep>(options_.down_seconds * 1e9)));
    victim.start();
    const bool back = wait(kPatience, [this] { return all_whole(); });
    return report(end("kill -9 a host and restart it", killed, back));
  }

  struct Drain {
    FleetRelay* relay;
    std::size_t rooms;
    TimePoint adopted_at{}, over_at{};
  };

  bool follow(Drain& drain) const {
    const FleetRelay& relay = *drain.relay;
    if (relay.map_version() < version_) return false;
    if (drain.adopted_at == TimePoint{}) drain.adopted_at = relay.version_seen_at();
    const bool empty = relay.draining_rooms() == 0 && relay.draining_buckets() == 0;
    if (empty && drain.over_at == TimePoint{} && record_evictions_begun()) drain.over_at = net::monotonic_now();
    return drain.over_at != TimePoint{};
  }
  bool record_evictions_begun() const { return !record_.evictions.empty(); }

  std::size_t moving_from(const FleetRelay& relay, const shard::ShardMap& before) const {
    return static_cast<std::size_t>(std::count_if(pairings_.begin(), pairings_.end(), [&](const auto& pairing) {
      const Bucket bucket = pairing->bucket();
      return before.host_of(bucket) == relay.hostname() && map_->host_of(bucket) != relay.hostname();
    }));
  }

  Duration predicted(std::size_t rooms) const {
    return Duration(static_cast<Duration::rep>(
        (options_.drain_delay_seconds + static_cast<double>(rooms) / options_.eviction_rate) * 1e9));
  }
  Duration longest(const std::vector<Drain>& drains) const {
    Duration most{};
    for (const Drain& drain : drains) most = std::max(most, predicted(drain.rooms));
    return most;
  }

  void begin(const std::string& title) {
    say("== " + title);
    record_ = FleetRecord{};
  }

  FleetPhase end(const std::string& title, TimePoint began, bool converged) {
    FleetPhase phase;
    phase.title = title;
    phase.took = net::monotonic_now() - began;
    run_for(seconds(2));  // traffic over the new splices, so that a loss would show
    phase.record = record_;
    phase.pairings = pairings_.size();
    phase.back = whole();
    if (!converged) phase.trouble = first_trouble();
    return phase;
  }

  bool report(const FleetPhase& phase) {
    print_phase(phase, options_.json);
    return phase.back == phase.pairings && phase.record.lost == 0;
  }

  std::string first_trouble() const {
    for (const auto& pairing : pairings_)
      if (!pairing->is_whole()) return pairing->trouble();
    return "a relay still drains";
  }

  void say(const std::string& line) const { std::cerr << line << std::endl; }

  const FleetOptions& options_;
  TemporaryFolder folder_;
  boost::asio::io_context loop_;
  SeededRandom random_;
  FleetMapServer map_server_;
  boost::asio::steady_timer chat_timer_;
  client::TlsTrust trust_;
  std::uint64_t version_ = 0;
  std::unique_ptr<shard::ShardMap> map_;
  FleetRecord record_;
  std::vector<std::unique_ptr<FleetRelay>> relays_;
  std::vector<std::unique_ptr<FleetPairing>> pairings_;
  std::size_t turn_ = 0;
};

}  // namespace

int run_fleet(const FleetOptions& options) {
  Fleet fleet(options);
  return fleet.run();
}

}  // namespace tandem::app
