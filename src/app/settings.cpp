#include "tandem/app/settings.hpp"

namespace tandem::app {

relay::Settings relay_settings(const config::Config& config) {
  relay::Settings s;
  s.hostname = config.hostname;
  s.resolved = config.resolved();
  s.attest_required = config.attest.required;
  s.attest_configured = config.attest.app_id.has_value();
  s.app_id = config.attest.app_id.value_or("");

  constexpr ByteCount kOff{UINT64_MAX};
  s.meter.messages_per_second = UINT64_MAX;
  if (const auto& rate = config.limits.messages_per_second) s.meter.messages_per_second = *rate;
  s.meter.bytes_per_window = config.limits.room_bytes_per_day.value_or(kOff).value;
  s.upgrades_per_minute = config.limits.upgrades_per_minute;
  s.attests_per_minute = config.limits.attests_per_minute;
  s.sockets_per_client = config.limits.sockets_per_client;
  s.sockets = config.limits.sockets;
  s.rooms = config.limits.rooms;
  if (const auto& egress = config.limits.box_egress_per_month)
    s.egress_per_month = relay::Settings::Egress{egress->limit.value, egress->hard};

  s.request = config.timeouts.request;
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

namespace {

net::AddressBlock block(const config::Cidr& cidr) {
  const auto& ip = cidr.network;
  if (ip.v6) return {net::Address::v6(ip.bytes), cidr.prefix_bits};
  return {net::Address::v4({ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]}), 96u + cidr.prefix_bits};
}

net::ProxySettings::Trust trust(config::ProxyTrust t) {
  switch (t) {
    case config::ProxyTrust::none: return net::ProxySettings::Trust::none;
    case config::ProxyTrust::forwarded_for: return net::ProxySettings::Trust::forwarded_for;
    case config::ProxyTrust::cloudflare: return net::ProxySettings::Trust::cloudflare;
    case config::ProxyTrust::proxy_protocol: return net::ProxySettings::Trust::proxy_protocol;
  }
  return net::ProxySettings::Trust::none;
}

}  // namespace

net::Settings net_settings(const config::Config& config) {
  net::Settings s;
  s.proxy.trust = trust(config.proxy.trust);
  s.proxy.hops = config.proxy.hops;
  for (const config::Cidr& cidr : config.proxy.from) s.proxy.from.push_back(block(cidr));

  s.message_bytes = config.limits.message_bytes.value_or(ByteCount{UINT64_MAX}).value;
  s.splice_buffer_bytes = static_cast<std::uint32_t>(config.limits.splice_buffer.value);
  s.socket_buffer_bytes = static_cast<std::uint32_t>(config.limits.socket_buffer.value);
  s.fast_socket_buffer_bytes = static_cast<std::uint32_t>(config.limits.fast_socket_buffer.value);
  if (const auto& rate = config.limits.room_bytes_per_second) s.room_bytes_per_second = rate->value;
  if (const auto& rate = config.limits.box_bytes_per_second) s.box_bytes_per_second = rate->value;

  s.request = config.timeouts.request;
  s.keepalive = config.timeouts.keepalive;
  s.stall = config.timeouts.stall;
  s.shutdown = config.timeouts.shutdown;
  return s;
}

log::Options log_options(const config::Config& config) {
  log::Options options;
  switch (config.log.level) {
    case config::LogLevel::debug: options.level = log::Level::debug; break;
    case config::LogLevel::info: options.level = log::Level::info; break;
    case config::LogLevel::warn: options.level = log::Level::warn; break;
    case config::LogLevel::error: options.level = log::Level::error; break;
  }
  options.format = config.log.format == config::LogFormat::json ? log::Format::json : log::Format::text;
  return options;
}

}  // namespace tandem::app
