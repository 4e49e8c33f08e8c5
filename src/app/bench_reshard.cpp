#include "app/bench_reshard.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace tandem::app {
namespace {

constexpr std::chrono::seconds kInterval{7};
constexpr const char* kElsewhere = "elsewhere.test";

}  // namespace

Resharder::Resharder(std::string path, const std::string& relay_host, std::uint64_t seed)
    : path_(std::move(path)), random_(seed), next_at_(Clock::now() + kInterval) {
  if (path_.empty()) return;
  std::ifstream file(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto read = shard::ShardMap::parse(text);
  if (const auto* fault = std::get_if<shard::MapFault>(&read))
    throw std::runtime_error("bench: " + path_ + ": " + fault->message);
  const auto& map = std::get<shard::ShardMap>(read);
  version_ = map.version().value;
  const bool named = std::find(map.hosts().begin(), map.hosts().end(), relay_host) != map.hosts().end();
  relay_host_ = named ? relay_host : map.hosts().front();
}

void Resharder::advance() {
  if (path_.empty() || Clock::now() < next_at_) return;
  next_at_ = Clock::now() + kInterval;
  publish(whole_ ? static_cast<std::uint16_t>(1 + random_.below(65535)) : std::uint16_t{0});
}

void Resharder::finish() {
  if (!path_.empty() && !whole_) publish(0);
}

void Resharder::publish(std::uint16_t first_given_away) {
  whole_ = first_given_away == 0;
  std::vector<shard::Range> ranges{
      {0, whole_ ? std::uint16_t{65535} : static_cast<std::uint16_t>(first_given_away - 1), relay_host_}};
  if (!whole_) ranges.push_back({first_given_away, 65535, kElsewhere});
  const auto made = shard::ShardMap::make(MapVersion{++version_}, std::move(ranges));
  const std::string fresh = path_ + ".new";
  std::ofstream(fresh, std::ios::binary | std::ios::trunc) << std::get<shard::ShardMap>(made).to_json();
  if (std::rename(fresh.c_str(), path_.c_str()) != 0)
    throw std::runtime_error("bench: " + path_ + ": cannot be written");
  ++count_;
}

bool Resharder::explains(const client::Ending& ending) const {
  if (path_.empty()) return false;
  if (const auto* refused = std::get_if<client::Refused>(&ending)) return refused->status == 421;
  const auto* closed = std::get_if<client::Closed>(&ending);
  return closed != nullptr && closed->code == 4421 && closed->reason.starts_with("reshard");
}

}  // namespace tandem::app
