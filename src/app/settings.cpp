#include "tandem/app/settings.hpp"

namespace tandem::app {

relay::Settings relay_settings(const config::Config& config) {
  relay::Settings s;
  s.hostname = config.hostname;
  s.resolved = config.resolved();
  s.attest_required = config.attest.required;
  s.attest_configured = config.attest.app_id.has_value();

  s.meter.messages_per_second = config.limits.messages_per_second;
  s.meter.bytes_per_window = config.limits.room_bytes_per_day.value;
  s.upgrades_per_minute = config.limits.upgrades_per_minute;
  s.attests_per_minute = config.limits.attests_per_minute;
  s.sockets_per_client = config.limits.sockets_per_client;
  s.sockets = config.limits.sockets;
  s.rooms = config.limits.rooms;
  if (const auto& egress = config.limits.box_egress_per_month)
    s.egress_per_month = relay::Settings::Egress{egress->limit.value, egress->hard};

  s.admission = config.timeouts.admission;
  s.rendezvous = config.timeouts.rendezvous;
  s.established_idle = config.timeouts.established_idle;
  s.shed_above_percent = config.shed.memory_pressure;
  s.shed_resume_below_percent = config.shed.resume_below;
  if (config.shard_map) {
    s.drain_delay = config.shard_map->drain_delay;
    s.eviction_rate = config.shard_map->eviction_rate;
  }
  return s;
}

}  // namespace tandem::app
