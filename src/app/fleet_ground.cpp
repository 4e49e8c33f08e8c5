#include "app/fleet_ground.hpp"

#include "tandem/app/dev_cert.hpp"
#include "tandem/net/clock.hpp"
#include "tandem/shard/map_diff.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <stdexcept>
#include <unistd.h>

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr auto kChatInterval = std::chrono::milliseconds(500);

}  // namespace

class FleetGround::Folder {
 public:
  explicit Folder(bool keep) : keep_(keep) {
    std::string pattern = (fs::temp_directory_path() / "tandem-fleet-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (keep_)
      std::cerr << "left behind: " << path_ << "\n";
    else
      fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  bool keep_;
};

FleetGround::FleetGround(const FleetOptions& options)
    : options_(options),
      folder_(std::make_unique<Folder>(options.keep)),
      random_(std::random_device{}()),
      map_server_(loop_),
      chat_timer_(loop_) {
  const auto certificate = make_dev_certificate({});
  if (const auto* fault = std::get_if<std::string>(&certificate)) throw std::runtime_error(*fault);
  const std::string fault = write_dev_certificate(std::get<DevCertificate>(certificate), folder_->path());
  if (!fault.empty()) throw std::runtime_error(fault);
  trust_ = client::trust_file(folder_->path() + "/fullchain.pem");
}

FleetGround::~FleetGround() = default;

// ---- the loop

bool FleetGround::wait(Duration patience, const std::function<bool()>& condition) {
  const TimePoint end = net::monotonic_now() + patience;
  while (!condition()) {
    if (net::monotonic_now() >= end) return false;
    loop_.restart();
    loop_.run_one_for(std::chrono::milliseconds(100));
    for (const auto& relay : relays_)
      if (relay->has_crashed())
        throw std::runtime_error(relay->hostname() + " stopped by itself: " + last_line(relay->log_path()));
  }
  return true;
}

void FleetGround::run_for(Duration time) {
  const TimePoint end = net::monotonic_now() + time;
  (void)wait(time + seconds(1), [end] { return net::monotonic_now() >= end; });
}

void FleetGround::chat_later() {
  chat_timer_.expires_after(kChatInterval / 10);
  chat_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (std::size_t i = turn_; i < pairings_.size(); i += 10) pairings_[i]->chat();
    turn_ = (turn_ + 1) % 10;
    chat_later();
  });
}

// ---- beginning and end

void FleetGround::start_relays(std::size_t hosts_in_the_map) {
  std::vector<std::string> hosts;
  for (int number = 1; number <= 3; ++number) {
    relays_.push_back(std::make_unique<FleetRelay>(loop_, number, folder_->path(), map_server_.url(), options_));
    audits_.emplace_back(relays_.back()->hostname(), relays_.back()->log_path());
    if (hosts.size() < hosts_in_the_map) hosts.push_back(relays_.back()->hostname());
  }
  publish(shard::init_ranges(hosts));
  for (const auto& relay : relays_) relay->start();
  say("starting three relays; map " + map_server_.url());
  if (!wait(seconds(60), [this] {
        return std::all_of(relays_.begin(), relays_.end(), [](const auto& r) { return r->is_ready(); });
      }))
    throw std::runtime_error("a relay did not get ready: " + last_line(relays_[0]->log_path()));
}

void FleetGround::start_pairings() {
  say("pairing " + std::to_string(options_.pairings) + " macs and phones");
  for (int i = 0; i < options_.pairings; ++i) {
    pairings_.push_back(std::make_unique<FleetPairing>(loop_, trust_, map_server_.url(), random_, record_, i));
    rooms_[pairings_.back()->room().tag()] = pairings_.back()->bucket();
  }
  chat_later();
  const TimePoint began = net::monotonic_now();
  for (std::size_t i = 0; i < pairings_.size(); ++i) {
    pairings_[i]->start();
    if (i % 10 == 9) run_for(milliseconds(50));
  }
  if (!wait(kFleetPatience, [this] { return all_whole(); }))
    throw std::runtime_error("not every pairing came up: " + first_trouble());
  say("all " + std::to_string(pairings_.size()) + " pairings talk after " + in_seconds(net::monotonic_now() - began));
}

void FleetGround::stop() {
  for (auto& pairing : pairings_) pairing->stop();
  run_for(milliseconds(300));
}

// ---- what it looks like

std::size_t FleetGround::whole() const {
  return static_cast<std::size_t>(
      std::count_if(pairings_.begin(), pairings_.end(), [](const auto& p) { return p->is_whole(); }));
}

bool FleetGround::all_whole() const { return whole() == pairings_.size(); }

std::size_t FleetGround::rooms_at(const FleetRelay& relay) const {
  return static_cast<std::size_t>(
      std::count_if(pairings_.begin(), pairings_.end(), [&](const auto& p) { return p->host() == relay.hostname(); }));
}

FleetRelay& FleetGround::relay(const std::string& hostname) {
  return **std::find_if(relays_.begin(), relays_.end(), [&](const auto& r) { return r->hostname() == hostname; });
}

std::size_t FleetGround::drop_some_phones() {
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < pairings_.size(); i += 10) {
    if (!pairings_[i]->is_whole()) continue;
    pairings_[i]->drop_phone();
    ++dropped;
  }
  return dropped;
}

std::string FleetGround::first_trouble() const {
  for (const auto& pairing : pairings_)
    if (!pairing->is_whole()) return pairing->trouble();
  return "a relay still drains";
}

Duration FleetGround::poll() const { return Duration(static_cast<Duration::rep>(options_.poll_seconds * 1e9)); }

void FleetGround::say(const std::string& line) const { std::cerr << line << std::endl; }

// ---- the map

void FleetGround::publish(shard::Edited edited) {
  if (const auto* refused = std::get_if<shard::EditFault>(&edited)) throw std::runtime_error(refused->message);
  auto made = shard::ShardMap::make(MapVersion{++version_}, std::get<shard::Ranges>(std::move(edited)));
  maps_.emplace(version_, std::get<shard::ShardMap>(std::move(made)));
  map_server_.publish(map());
}

bool FleetGround::all_hold_the_newest() const {
  return std::all_of(relays_.begin(), relays_.end(), [this](const auto& r) { return r->map_version() == version_; });
}

shard::Edited FleetGround::half_of_the_widest() const {
  const shard::Ranges& ranges = map().ranges();
  const shard::Range& widest = *std::max_element(
      ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.high - a.low < b.high - b.low; });
  const auto shares = shard::shares(map());
  const auto owned = [&](const auto& relay) {
    const auto share = shares.find(relay->hostname());
    return share == shares.end() ? 0u : share->second.buckets;
  };
  const auto least = std::min_element(relays_.begin(), relays_.end(),
                                      [&](const auto& a, const auto& b) { return owned(a) < owned(b); });
  const auto middle = static_cast<std::uint16_t>((widest.low + widest.high + 1) / 2);
  return shard::move_range(map(), Bucket{middle}, Bucket{widest.high}, (*least)->hostname(), true);
}

}  // namespace tandem::app
