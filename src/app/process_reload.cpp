#include "app/process_impl.hpp"
#include "tandem/app/settings.hpp"
#include "tandem/config/load.hpp"
#include "tandem/config/reload.hpp"
#include "tandem/net/clock.hpp"

#include <algorithm>
#include <utility>

namespace tandem::app {
namespace {

std::string joined(const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "" : ", ") + key;
  return out;
}

}  // namespace

// Everything that can be refused is tried before anything is changed: a bad new configuration leaves the old one whole.
void Process::Impl::reload() {
  if (stopping) return;
  manager.reloading();
  const auto refuse = [this](const std::string& why) {
    log.error("reload refused, the old configuration stays: " + why);
    if (listening) manager.ready();
  };
  auto loaded = config::load(config.file);
  if (const auto* error = std::get_if<config::ConfigError>(&loaded)) return refuse(error->one_line());
  config::ReloadPlan plan = config::plan_reload(config, std::get<config::Config>(loaded));

  if (const auto fault = worker->check(worker_settings(plan.effective))) return refuse(*fault);
  if (plan.effective.tls) {
    const bool other_files = !(plan.effective.tls == config.tls);
    if (const auto fault = certificates.load(plan.effective, net::wall_now())) {
      if (other_files) {
        const bool renamed = std::find(plan.restart.begin(), plan.restart.end(), "hostname") != plan.restart.end();
        return refuse(*fault + (renamed ? "; a new hostname needs a restart" : ""));
      }
      log.warn("new certificate not taken, the old one stays", {{"hostname", config.hostname}, {"why", *fault}});
    } else {
      server.set_tls(certificates.context());
    }
  }
  config = std::move(plan.effective);
  const log::Options options = log_options(config);
  log.configure(options.level, options.format);
  pressure = MemoryPressure(config.shed.pressure_file);
  worker->update(worker_settings(config));
  server.update(net_settings(config));
  server.dispatch(relay::event::SettingsChanged{relay_settings(config)});

  log.info("reloaded", {{"changed", plan.now.empty() ? std::string("nothing") : joined(plan.now)}});
  for (const std::string& key : plan.restart) log.warn(key + " changed: it takes effect at the next restart");
  if (listening) manager.ready();
}

}  // namespace tandem::app
