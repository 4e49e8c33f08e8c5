#include "app/bench_peer.hpp"

#include "tandem/core/authority.hpp"
#include "tandem/net/http_fetch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <openssl/rand.h>

namespace tandem::app {
namespace {

constexpr std::uint64_t kSocketsPerAddress = 50;  // below limits.sockets_per_client and limits.upgrades_per_minute
constexpr std::uint64_t kAddresses = 60000;
constexpr int kMisplacedAllowed = 10000;

double sum_of(const std::string& metrics, const std::string& name) {
  double sum = 0;
  for (std::size_t at = 0; at < metrics.size();) {
    const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
    const std::string line = metrics.substr(at, end - at);
    at = end + 1;
    const bool ours =
        line.starts_with(name) && line.size() > name.size() && (line[name.size()] == ' ' || line[name.size()] == '{');
    if (ours) sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

}  // namespace

std::optional<RelayFigures> read_relay(const std::string& admin) {
  net::FetchRequest request;
  request.url = "http://" + admin + "/metrics";
  request.max_body_bytes = 8 * 1024 * 1024;
  const net::FetchResult result = net::fetch_blocking(std::move(request));
  const auto* answer = std::get_if<net::FetchAnswer>(&result);
  if (answer == nullptr) return std::nullopt;
  return RelayFigures{sum_of(answer->body, "process_open_fds"), sum_of(answer->body, "process_resident_memory_bytes"),
                      sum_of(answer->body, "tandem_sockets"), sum_of(answer->body, "tandem_rooms")};
}

BenchRun::BenchRun(const BenchOptions& options, const BenchProgress& progress)
    : options_(options), progress_(progress), trust_(client::trust_anything()) {}

client::Destination BenchRun::next_destination() {
  const std::uint64_t address = opened_++ / kSocketsPerAddress % kAddresses;
  client::Destination destination;
  destination.host = options_.host;
  const auto host = Authority::parse(options_.host);
  if (host && host->kind() != Authority::Kind::ipv6)
    destination.source = "127.16." + std::to_string(address / 250) + "." + std::to_string(1 + address % 250);
  if (host && host->host() == "localhost")  // the addresses that take turns are of IPv4
    destination.connect = "127.0.0.1:" + std::to_string(host->port().value_or(443));
  return destination;
}

std::shared_ptr<client::Endpoint> BenchRun::open(Role role, const RoomName& room, client::Endpoint::Handlers handlers) {
  client::JoinSettings join;
  join.role = role;
  join.room = room;
  join.patience = seconds(10);
  return client::Endpoint::open(loop_, trust_, next_destination(), join, std::move(handlers));
}

RoomName BenchRun::fresh_room() {
  std::array<std::uint8_t, 32> digest{};
  RAND_bytes(digest.data(), static_cast<int>(digest.size()));
  return RoomName(digest);
}

bool BenchRun::is_misplaced(const client::Ending& ending) {
  const auto* refused = std::get_if<client::Refused>(&ending);
  return refused != nullptr && refused->status == 421 && ++misplaced_ < kMisplacedAllowed;
}

std::vector<std::string> BenchRun::faults() const {
  std::vector<std::string> lines;
  lines.reserve(faults_.size());
  for (const auto& [what, count] : faults_) lines.push_back(std::to_string(count) + " x " + what);
  return lines;
}

void BenchRun::tick() {
  const auto now = Clock::now();
  if (now - shown_ < std::chrono::milliseconds(200)) return;
  shown_ = now;
  if (progress_) progress_(std::min(1.0, (now - began_) / whole_));
}

double percentile_ms(std::vector<Duration>& values, double fraction) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(fraction * static_cast<double>(values.size()))) - 1;
  const auto nth = values.begin() + std::max<std::ptrdiff_t>(0, rank);
  std::nth_element(values.begin(), nth, values.end());
  return to_seconds(*nth) * 1e3;
}

bool is_loopback_host(const std::string& host) {
  const auto parsed = Authority::parse(host);
  if (!parsed) return false;
  switch (parsed->kind()) {
    case Authority::Kind::name: return parsed->host() == "localhost";
    case Authority::Kind::ipv4: return parsed->host().starts_with("127.");
    case Authority::Kind::ipv6: return parsed->host() == "::1";
  }
  return false;
}

}  // namespace tandem::app
