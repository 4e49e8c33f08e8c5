#include "tandem/app/process.hpp"

#include "app/process_impl.hpp"
#include "tandem/app/settings.hpp"
#include "tandem/core/version.hpp"
#include "tandem/net/clock.hpp"
#include "tandem/net/stop_signals.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace tandem::app {
namespace {

constexpr unsigned kDrainLineEvery = 10;  // seconds

}  // namespace

Process::Process(config::Config config, log::Log& log) : impl_(std::make_unique<Impl>(std::move(config), log)) {}
Process::~Process() = default;
int Process::run() { return impl_->run(); }

Process::Impl::Impl(config::Config c, log::Log& l)
    : config(std::move(c)),
      log(l),
      event_log(log),
      metrics([this] { return sample(); }),
      loop(1),
      relay(relay_settings(config), random, observers),
      server(loop, relay, observers, net_settings(config)),
      certificates(log),
      pressure(config.shed.pressure_file),
      admin(loop, {[this] { return metrics.scrape(); }, [this] { return status(); },
                   [this](const RoomName& room) { return relay.explain(room, net::read_clock()); }}),
      signals(loop),
      stop_signals(loop),
      second(loop),
      watchdog(loop),
      last_wait(loop),
      started(net::monotonic_now()) {
  observers.add(metrics);
  observers.add(event_log);
  observers.add(stop_clock);
}

Process::Impl::~Impl() = default;

int Process::Impl::run() {
  log.info("starting", {{"version", version()},
                        {"commit", commit()},
                        {"hostname", config.hostname},
                        {"mode", config.resolved() ? "resolved" : "direct"}});
  catch_signals();
  if (!boot()) return 1;
  arm_second();
  arm_watchdog();
  loop.run();
  return exit_code;
}

void Process::Impl::fail(const std::string& line) {
  log.error(line);
  exit_code = 1;
  loop.stop();
}

void Process::Impl::arm_second() {
  second.expires_after(std::chrono::seconds(1));
  second.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    on_second();
    arm_second();
  });
}

void Process::Impl::on_second() {
  ++seconds_run;
  const Now now = net::read_clock();
  if (const auto percent = pressure.sample()) {
    pressure_missing = false;
    server.dispatch(relay::event::PressureSampled{*percent});
  } else if (!pressure_missing) {
    pressure_missing = true;
    log.warn("memory pressure cannot be read: shedding is off until it can", {{"file", pressure.file()}});
    server.dispatch(relay::event::PressureSampled{0});
  }
  if (certificates.refresh(config, now.wall)) server.set_tls(certificates.context());

  const auto snapshot = relay.snapshot(now);
  const auto counters = server.counters();
  history.sample(counters.from_mac.bytes + counters.from_phone.bytes, snapshot.draining.rooms, now.mono);
  if (snapshot.draining.rooms > 0 && seconds_run % kDrainLineEvery == 0) {
    log.info("draining", {{"rooms_left", snapshot.draining.rooms},
                          {"buckets", snapshot.draining.buckets},
                          {"expected_end_seconds",
                           snapshot.draining.expected_end ? to_seconds(*snapshot.draining.expected_end) : -1.0}});
  }
  if (std::string line = status_line(); line != last_status_line) {
    last_status_line = std::move(line);
    manager.status(last_status_line);
  }
}

void Process::Impl::arm_watchdog() {
  const auto interval = manager.watchdog_interval();
  if (!interval) return;
  // Fed from the loop: a loop that hangs is what the watchdog is to notice.
  manager.alive();
  watchdog.expires_after(*interval);
  watchdog.async_wait([this](const boost::system::error_code& error) {
    if (!error) arm_watchdog();
  });
}

void Process::Impl::catch_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing, which the store gets over
  std::signal(SIGUSR1, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) {
    boost::system::error_code error;
    (number == SIGTERM || number == SIGINT ? stop_signals : signals).add(number, error);
    if (error) log.warn("a signal cannot be caught", {{"signal", number}, {"why", error.message()}});
  }
  wait_for_signal(signals);
  wait_for_signal(stop_signals);
}

void Process::Impl::wait_for_signal(boost::asio::signal_set& set) {
  set.async_wait([this, &set](const boost::system::error_code& error, int number) {
    if (error) return;
    on_signal(number);
    wait_for_signal(set);
  });
}

void Process::Impl::on_signal(int number) {
  switch (number) {
    case SIGHUP:
      if (!stopping) reload();
      break;
    case SIGUSR2:
      log.toggle_debug();
      log.info("log level changed by signal", {{"debug", log.enabled(log::Level::debug)}});
      break;
    default: begin_stop();
  }
}

poll::Offered Process::Impl::offer(const std::shared_ptr<const shard::ShardMap>& map) {
  server.dispatch(relay::event::MapReceived{map});
  poll::Offered offered{relay.last_map_outcome().kind, relay.snapshot(net::read_clock()).floor};
  if (offered.kind == relay::MapOutcome::Kind::adopted) warn_if_owning_nothing(*map);
  return offered;
}

void Process::Impl::begin_stop() {
  if (stopping) return;
  stopping = true;
  stop_began = net::monotonic_now();
  log.info("stopping");
  manager.stopping();
  if (poller) poller->stop();
  server.stop([this] { end_stop(); });
}

void Process::Impl::end_stop() {
  if (manager.listening_sockets().empty()) return leave();
  const TimePoint until =
      std::min(stop_clock.stay_until(config.timeouts.rendezvous), stop_began + config.timeouts.shutdown);
  last_wait.expires_after(std::max(Duration::zero(), until - net::monotonic_now()));
  last_wait.async_wait([this](const boost::system::error_code& error) {
    if (!error) leave();
  });
}

void Process::Impl::leave() {
  // The admin listener answers until the store has written what it holds.
  if (worker) worker->stop();
  // Whoever tears down the sets gives signals back their deadly meaning: the end that was reached is not to look like
  // one.
  static_cast<void>(net::block_stop_signals());
  log.info("stopped");
  admin.close();
  loop.stop();
}

}  // namespace tandem::app
