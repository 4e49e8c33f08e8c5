#include "app/process_impl.hpp"
#include "tandem/core/version.hpp"
#include "tandem/net/clock.hpp"

#include <string>

namespace tandem::app {
namespace {

admin::FetchFault fetch_fault(const poll::LastFault& last) {
  return {std::string(last.fault.cause_label()),
          last.fault.kind,
          last.fault.value,
          last.fault.detail,
          last.polls,
          last.lasted};
}

}  // namespace

std::optional<std::string> Process::Impl::not_ready() const {
  if (stopping) return "stopping";
  if (listening) return std::nullopt;
  if (config.resolved() && (!poller || !poller->map())) return "no shard map yet";
  return "the listeners are not up yet";
}

admin::Status Process::Impl::status() const {
  const Now now = net::read_clock();
  admin::Status s;
  s.hostname = config.hostname;
  s.uptime = now.mono - started;
  s.now = now.wall;
  s.not_ready = not_ready();
  s.relay = relay.snapshot(now);
  const net::Counters counters = server.counters();
  s.handshaking = counters.handshaking;
  if (poller) {
    s.map_age = poller->age();
    s.map = poller->map();
    if (const auto last = poller->failing()) s.fetch_failing = fetch_fault(*last);
    if (const auto last = poller->recovered()) s.fetch_recovered = fetch_fault(*last);
  }
  s.bytes_per_second = counters.bytes_per_second;
  s.last_hour = history.last_hour();
  s.drain_began_with = history.drain_began_with();
  s.certificate_expiry = certificates.expiry();
  return s;
}

metrics::Sample Process::Impl::sample() const {
  metrics::Sample s;
  s.relay = relay.snapshot(net::read_clock());
  const net::Counters counters = server.counters();
  s.relayed_bytes = {counters.from_mac.bytes, counters.from_phone.bytes};
  s.relayed_messages = {counters.from_mac.messages, counters.from_phone.messages};
  s.handshaking = counters.handshaking;
  s.connections = counters.connections;
  if (poller) s.map_age = poller->age();
  s.certificate_expiry = certificates.expiry();
  return s;
}

std::string Process::Impl::status_line() const {
  if (const auto why = not_ready()) return *why;
  const auto s = relay.snapshot(net::read_clock());
  std::string line = config.resolved() ? "map version " + std::to_string(s.version.value) + ", " +
                                             std::to_string(s.owned_buckets) + " buckets owned, "
                                       : std::string("direct mode, ");
  line +=
      std::to_string(s.sockets.admitted) + " sockets admitted, " + std::to_string(s.rooms.spliced) + " rooms spliced";
  if (s.draining.rooms > 0) line += ", draining: " + std::to_string(s.draining.rooms) + " rooms left";
  if (s.shedding) line += ", shedding";
  return line;
}

}  // namespace tandem::app
