#include "app/fleet_relay.hpp"

#include "tandem/core/json.hpp"
#include "tandem/net/clock.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <signal.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

constexpr auto kStatusInterval = std::chrono::milliseconds(250);

std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  if (!bound) throw std::runtime_error("no free port on loopback");
  return ntohs(address.sin_port);
}

std::string in_milliseconds(double duration_seconds) {
  if (duration_seconds == 0) return "0s";
  return std::to_string(static_cast<long>(duration_seconds * 1000)) + "ms";
}

std::uint64_t number_at(const Json& object, const char* outer, const char* inner) {
  const Json::json_pointer path(std::string("/") + outer + "/" + inner);
  return object.contains(path) && object[path].is_number_unsigned() ? object[path].get<std::uint64_t>() : 0;
}

}  // namespace

FleetRelay::FleetRelay(boost::asio::io_context& loop, int number, const std::string& directory,
                       const std::string& map_url, const FleetOptions& options)
    : tandemd_(options.tandemd), fetcher_(loop), timer_(loop) {
  const std::string name = "relay" + std::to_string(number);
  const std::string admin = "127.0.0.1:" + std::to_string(free_port());
  hostname_ = "127.0.0.1:" + std::to_string(free_port());
  config_path_ = directory + "/" + name + ".jsonc";
  log_path_ = directory + "/" + name + ".log";
  status_url_ = "http://" + admin + "/status";
  const Json config = {
      {"hostname", hostname_},
      {"listen", {hostname_}},
      {"tls", {{"certificate", "fullchain.pem"}, {"private_key", "privkey.pem"}}},
      {"shard_map",
       {{"url", map_url},
        {"poll_interval", in_milliseconds(options.poll_seconds)},
        {"drain_delay", in_milliseconds(options.drain_delay_seconds)},
        {"eviction_rate", options.eviction_rate}}},
      {"attest", {{"required", false}}},
      {"limits", {{"upgrades_per_minute", 1000000}, {"attests_per_minute", 1000000}, {"sockets_per_client", 100000}}},
      {"timeouts", {{"rendezvous", in_milliseconds(options.rendezvous_seconds)}}},
      {"state", {{"path", name + ".db"}}},
      {"log", {{"format", "json"}}},
      {"admin", {{"listen", admin}}}};
  std::ofstream file(config_path_);
  file << config.dump(2) << "\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + config_path_);
  ask_later();
}

FleetRelay::~FleetRelay() {
  running_.cancel();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  for (int tenth = 0; tenth < 50; ++tenth) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill_hard();
}

void FleetRelay::start() {
  const int log = ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw std::system_error(errno, std::generic_category(), log_path_);
  const char* arguments[] = {tandemd_.c_str(), "--config", config_path_.c_str(), nullptr};
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::close_range(3, ~0u, 0);  // the sockets of the map server and of the pairings are not the relay's
    ::execv(arguments[0], const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  ::close(log);
  stopping_ = false;
}

void FleetRelay::kill_hard() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  ready_ = false;
}

void FleetRelay::stop() {
  if (pid_ <= 0) return;
  stopping_ = true;
  ready_ = false;
  ::kill(pid_, SIGTERM);
}

bool FleetRelay::is_running() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ > 0;
}

bool FleetRelay::has_crashed() { return pid_ > 0 && !is_running() && !stopping_; }

void FleetRelay::ask_later() {
  timer_.expires_after(kStatusInterval);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) ask();
  });
}

void FleetRelay::ask() {
  net::FetchRequest request;
  request.url = status_url_;
  running_ = fetcher_.start(std::move(request), [this](const net::FetchResult& result) {
    take(result);
    ask_later();
  });
}

void FleetRelay::take(const net::FetchResult& result) {
  const auto* answer = std::get_if<net::FetchAnswer>(&result);
  const auto status = parse_json(answer != nullptr ? answer->body : "", {.max_bytes = 1024 * 1024, .max_depth = 16});
  ready_ = status.has_value() && number_at(*status, "map", "version") > 0;
  if (!ready_) return;
  const std::uint64_t version = number_at(*status, "map", "version");
  if (version != map_version_) version_seen_at_ = net::monotonic_now();
  map_version_ = version;
  rooms_ = number_at(*status, "rooms", "spliced") + number_at(*status, "rooms", "mac_only") +
           number_at(*status, "rooms", "phone_only");
  draining_rooms_ = number_at(*status, "draining", "rooms");
  draining_buckets_ = static_cast<std::uint32_t>(number_at(*status, "draining", "buckets"));
}

}  // namespace tandem::app
