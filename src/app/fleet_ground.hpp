// What the scenarios of a fleet stand on: the relays, the map server, the pairings that chat all the while, and the
// loop, which a scenario turns by waiting. Publishing, following a reshard to its end, and judging a phase are here;
// what is done to the fleet is in fleet_scenarios.cpp.
#pragma once

#include "app/fleet_map_server.hpp"
#include "app/fleet_pairing.hpp"
#include "app/fleet_relay.hpp"
#include "app/fleet_report.hpp"
#include "tandem/app/fleet.hpp"
#include "tandem/app/fleet_audit.hpp"
#include "tandem/shard/map_edit.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tandem::app {

class FleetGround {
 public:
  explicit FleetGround(const FleetOptions& options);
  ~FleetGround();
  FleetGround(const FleetGround&) = delete;
  FleetGround& operator=(const FleetGround&) = delete;

  void start_relays(std::size_t hosts_in_the_map);  // three run; the map gives the ring to so many of them
  void start_pairings();                            // until all talk
  void stop();

  // ---- the loop. A relay that ends by itself ends the run: std::runtime_error.
  bool wait(Duration patience, const std::function<bool()>& condition);  // false: patience is over
  void run_for(Duration time);

  // ---- the map
  [[nodiscard]] const shard::ShardMap& map() const { return maps_.at(version_); }
  void publish(shard::Edited edited);
  [[nodiscard]] bool all_hold_the_newest() const;
  // An edit for scenarios that need one: the upper half of the widest range goes to the relay that owns least.
  [[nodiscard]] shard::Edited half_of_the_widest() const;

  // ---- phases. `change` publishes, and may do and wait for more; then every loser must let go of what it lost, every
  // pairing talk again, and `settled`, where given, say so too: it is asked all the while. false: something was wrong,
  // and has been said.
  bool reshard(const std::string& title, const std::function<void()>& change,
               const std::function<bool()>& settled = {});
  void begin(const std::string& title);
  bool end(TimePoint began, bool converged);
  void fault(const std::string& what) { findings_.faults.push_back(what); }

  [[nodiscard]] bool all_whole() const;
  // The phones of every tenth pairing that stands whole lose their network. -> how many
  std::size_t drop_some_phones();
  [[nodiscard]] bool has_evicted() const { return !record_.evictions.empty(); }
  [[nodiscard]] bool moves_rooms() const { return !drains_.empty(); }  // this reshard does
  [[nodiscard]] FleetRelay& relay(std::size_t index) { return *relays_.at(index); }
  [[nodiscard]] FleetRelay& relay(const std::string& hostname);
  [[nodiscard]] std::size_t rooms_at(const FleetRelay& relay) const;
  [[nodiscard]] FleetMapServer& map_server() { return map_server_; }
  [[nodiscard]] const FleetOptions& options() const { return options_; }
  [[nodiscard]] Duration poll() const;
  void say(const std::string& line) const;

 private:
  class Folder;
  struct Drain {
    FleetRelay* relay;
    std::size_t rooms;
    TimePoint adopted_at{}, over_at{};
  };
  void chat_later();
  bool follow(Drain& drain) const;
  [[nodiscard]] std::size_t whole() const;
  [[nodiscard]] std::size_t moving_from(const FleetRelay& relay, const shard::ShardMap& before) const;
  [[nodiscard]] Duration predicted(std::size_t rooms) const;
  [[nodiscard]] std::string first_trouble() const;

  const FleetOptions& options_;
  std::unique_ptr<Folder> folder_;
  boost::asio::io_context loop_;
  SeededRandom random_;
  FleetMapServer map_server_;
  boost::asio::steady_timer chat_timer_;
  client::TlsTrust trust_;
  std::uint64_t version_ = 0;
  FleetMaps maps_;
  FleetRooms rooms_;
  std::string title_;
  FleetRecord record_;
  FleetFindings findings_;
  std::vector<Drain> drains_;
  std::vector<std::unique_ptr<FleetRelay>> relays_;
  std::vector<FleetAudit> audits_;
  std::vector<std::unique_ptr<FleetPairing>> pairings_;
  std::size_t turn_ = 0;
};

inline constexpr Duration kFleetPatience = std::chrono::minutes(3);  // beyond what a phase should take

}  // namespace tandem::app
