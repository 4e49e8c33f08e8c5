#include "app/process_impl.hpp"
#include "tandem/app/checker.hpp"
#include "tandem/app/settings.hpp"
#include "tandem/net/clock.hpp"

#include <cassert>
#include <functional>
#include <sys/resource.h>
#include <utility>

#include <boost/asio/post.hpp>

namespace tandem::app {
namespace {

// To the most the system lets us have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

bool Process::Impl::boot() {
  raise_descriptor_limit();
  if (const auto fault = ca_fault(config)) {
    log.error(*fault);
    return false;
  }
  for (const std::string& warning : config_warnings(config, facts_here(config))) log.warn(warning);
  if (!load_certificate() || !start_admin() || !start_worker()) return false;
  if (!config.resolved()) return start_listening();
  start_poller();
  return true;
}

bool Process::Impl::load_certificate() {
  if (!config.tls) return true;
  if (const auto fault = certificates.load(config, net::wall_now())) {
    log.error(*fault);
    return false;
  }
  server.set_tls(certificates.context());
  return true;
}

bool Process::Impl::start_admin() {
  if (const auto error = admin.listen(config.admin_listen.ip.text(), config.admin_listen.port)) {
    log.error("admin.listen: " + config.admin_listen.text() + ": " + error.message() +
              "; stop what uses the address, or choose another");
    return false;
  }
  return true;
}

bool Process::Impl::start_worker() {
  worker = std::make_unique<Worker>(
      worker_settings(config), observers,
      [this](std::function<void()> on_loop) { boost::asio::post(loop, std::move(on_loop)); },
      [this](const relay::Event& event) { server.dispatch(event); },
      [this](const std::string& line) { log.info(line); });
  server.on_effect([this](relay::Effect&& effect) {
    [[maybe_unused]] const bool taken = worker->take(std::move(effect));
    assert(taken);
  });
  if (const auto fault = worker->start(net::read_clock())) {
    log.error(*fault);
    return false;
  }
  if (!config.state_path)
    log.info("state.path is null: registrations are kept in memory only and end with this process");
  return true;
}

void Process::Impl::start_poller() {
  const config::ShardMapSource& source = *config.shard_map;
  poll::PollSettings settings;
  settings.interval = source.poll_interval;
  settings.fetch_timeout = source.fetch_timeout;
  settings.boot_timeout = source.boot_timeout;
  settings.attempts = static_cast<int>(source.fetch_attempts);
  poller = std::make_unique<poll::Poller>(
      loop, poll::MapSource{source.url, source.ca_file.value_or("")}, settings, random, observers,
      [this](const std::shared_ptr<const shard::ShardMap>& map) { return offer(map); });
  log.info("fetching the shard map before listening", {{"url", source.url}});
  poller->start([this](const std::optional<std::string>& fault) {
    if (fault) return fail("no shard map after boot_timeout: " + *fault);
    if (!start_listening()) fail("could not start listening");
  });
}

bool Process::Impl::start_listening() {
  if (const auto& passed = manager.listening_sockets(); !passed.empty()) {
    for (const int fd : passed) {
      if (const auto error = server.adopt(fd)) {
        log.error("a socket passed by the service manager cannot be used: " + error.message());
        return false;
      }
    }
    log.info("listening on the sockets passed by the service manager", {{"sockets", passed.size()}});
  } else {
    for (const config::ListenAddress& address : config.listen) {
      if (const auto bound = server.listen(address.text()); !bound) {
        log.error("listen: " + address.text() + ": " + bound.error().message() +
                  "; stop what uses the address, or choose another");
        return false;
      }
      log.info("listening", {{"address", address.text()}});
    }
  }
  listening = true;
  manager.ready();
  log.info("ready");
  return true;
}

void Process::Impl::warn_if_owning_nothing(const shard::ShardMap& map) {
  if (const std::string warning = owns_nothing_warning(config, map); !warning.empty()) log.warn(warning);
}

}  // namespace tandem::app
