// The parts of a running relay and how they hang together. Members are destroyed in reverse order: whoever calls
// another stands below it.
#pragma once

#include "app/observers.hpp"
#include "tandem/admin/history.hpp"
#include "tandem/admin/server.hpp"
#include "tandem/app/certificate_keeper.hpp"
#include "tandem/app/memory_pressure.hpp"
#include "tandem/app/process.hpp"
#include "tandem/app/service_manager.hpp"
#include "tandem/app/stop_clock.hpp"
#include "tandem/app/system_random.hpp"
#include "tandem/app/worker.hpp"
#include "tandem/log/event_log.hpp"
#include "tandem/log/log.hpp"
#include "tandem/metrics/metrics.hpp"
#include "tandem/net/server.hpp"
#include "tandem/poll/poller.hpp"
#include "tandem/relay/relay.hpp"

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tandem::app {

struct Process::Impl {
  Impl(config::Config config, log::Log& log);
  ~Impl();

  int run();

  // ---- boot (process_boot.cpp)
  bool boot();  // everything up to the map; false: said why
  bool load_certificate();
  bool start_admin();
  bool start_worker();
  void start_poller();
  bool start_listening();              // ready from here
  void fail(const std::string& line);  // ends the run with exit code 1
  void warn_if_owning_nothing(const shard::ShardMap& map);

  // ---- while it runs (process.cpp, process_reload.cpp)
  void on_second();
  void arm_second();
  void arm_watchdog();
  void catch_signals();
  void wait_for_signal(boost::asio::signal_set& set);
  void on_signal(int number);
  void reload();
  void begin_stop();
  void end_stop();
  void leave();
  [[nodiscard]] poll::Offered offer(const std::shared_ptr<const shard::ShardMap>& map);

  // ---- looking (process_status.cpp)
  [[nodiscard]] std::optional<std::string> not_ready() const;
  [[nodiscard]] admin::Status status() const;
  [[nodiscard]] metrics::Sample sample() const;
  [[nodiscard]] std::string status_line() const;  // for systemd

  config::Config config;
  log::Log& log;
  log::EventLog event_log;
  metrics::Metrics metrics;
  StopClock stop_clock;
  Observers observers;
  SystemRandom random;
  boost::asio::io_context loop;
  relay::Relay relay;
  net::Server server;
  CertificateKeeper certificates;
  ServiceManager manager;
  MemoryPressure pressure;
  admin::History history;
  admin::Server admin;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<poll::Poller> poller;
  boost::asio::signal_set signals, stop_signals;  // apart: of one set, SIGHUPs without end go before a SIGTERM
  boost::asio::steady_timer second, watchdog, last_wait;

  TimePoint started, stop_began{};
  bool listening = false, stopping = false, pressure_missing = false;
  int exit_code = 0;
  std::string last_status_line;
  unsigned seconds_run = 0;
};

}  // namespace tandem::app
