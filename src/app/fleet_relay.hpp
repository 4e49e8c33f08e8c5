// One relay of the fleet: a tandemd process of our own, its configuration, and what its /status says now and then.
#pragma once

#include "tandem/app/fleet.hpp"
#include "tandem/core/time.hpp"
#include "tandem/net/http_fetch.hpp"

#include <cstdint>
#include <string>
#include <sys/types.h>

#include <boost/asio/steady_timer.hpp>

namespace tandem::app {

class FleetRelay {
 public:
  // Writes `directory`/relayN.jsonc; certificate and key are there already. Throws std::runtime_error where it cannot.
  FleetRelay(boost::asio::io_context& loop, int number, const std::string& directory, const std::string& map_url,
             const FleetOptions& options);
  ~FleetRelay();  // SIGTERM, then SIGKILL after 5 s
  FleetRelay(const FleetRelay&) = delete;
  FleetRelay& operator=(const FleetRelay&) = delete;

  void start();
  void kill_hard();                  // SIGKILL, and reaped
  void stop();                       // SIGTERM; is_running() says when it is over
  [[nodiscard]] bool is_running();   // looks
  [[nodiscard]] bool has_crashed();  // ended although nobody asked it to

  [[nodiscard]] const std::string& hostname() const noexcept { return hostname_; }
  [[nodiscard]] const std::string& log_path() const noexcept { return log_path_; }

  // As of the newest /status, asked four times a second.
  [[nodiscard]] bool is_ready() const noexcept { return ready_; }
  [[nodiscard]] std::uint64_t map_version() const noexcept { return map_version_; }
  [[nodiscard]] std::uint64_t rooms() const noexcept { return rooms_; }
  [[nodiscard]] std::uint64_t draining_rooms() const noexcept { return draining_rooms_; }
  [[nodiscard]] std::uint32_t draining_buckets() const noexcept { return draining_buckets_; }
  [[nodiscard]] TimePoint version_seen_at() const noexcept {
    return version_seen_at_;
  }  // when map_version() was first reported

 private:
  void ask_later();
  void ask();
  void take(const net::FetchResult& result);

  std::string tandemd_, hostname_, config_path_, log_path_, status_url_;
  net::HttpFetcher fetcher_;
  boost::asio::steady_timer timer_;
  net::Fetch running_;
  pid_t pid_ = -1;
  bool ready_ = false, stopping_ = false;
  std::uint64_t map_version_ = 0, rooms_ = 0, draining_rooms_ = 0;
  std::uint32_t draining_buckets_ = 0;
  TimePoint version_seen_at_{};
};

}  // namespace tandem::app
