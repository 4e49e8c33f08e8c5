#include "sampled.hpp"

#include "tandem/core/version.hpp"

namespace tandem::metrics {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

namespace {

struct Series {
  double value;
  std::vector<ClientMetric::Label> labels{};
};

MetricFamily family(MetricType type, std::string name, std::string help, std::vector<Series> series) {
  MetricFamily f;
  f.name = std::move(name);
  f.help = std::move(help);
  f.type = type;
  for (auto& s : series) {
    ClientMetric m;
    m.label = std::move(s.labels);
    (type == MetricType::Counter ? m.counter.value : m.gauge.value) = s.value;
    f.metric.push_back(std::move(m));
  }
  return f;
}

template <class Number>
double number(Number n) {
  return static_cast<double>(n);
}

}  // namespace

std::vector<MetricFamily> sampled_families(const Sample& s, const ProcessSample& p) {
  const auto& r = s.relay;
  std::vector<MetricFamily> out;
  const auto gauge = [&](const char* name, const char* help, std::vector<Series> series) {
    out.push_back(family(MetricType::Gauge, name, help, std::move(series)));
  };
  const auto counter = [&](const char* name, const char* help, std::vector<Series> series) {
    out.push_back(family(MetricType::Counter, name, help, std::move(series)));
  };
  gauge("tandem_rooms", "Rooms with sockets, by who is in them; pending: nobody is admitted yet.",
        {{number(r.rooms.spliced), {{"state", "spliced"}}},
         {number(r.rooms.mac_only), {{"state", "mac_only"}}},
         {number(r.rooms.phone_only), {{"state", "phone_only"}}},
         {number(r.rooms.pending), {{"state", "pending"}}}});
  gauge("tandem_sockets", "Open connections: in TLS or HTTP, with a WebSocket not admitted yet, admitted.",
        {{number(s.handshaking), {{"state", "handshake"}}},
         {number(r.sockets.pending), {{"state", "pending"}}},
         {number(r.sockets.admitted), {{"state", "admitted"}}}});
  counter("tandem_relayed_bytes_total", "Payload bytes taken from admitted endpoints.",
          {{number(s.relayed_bytes.mac), {{"from", "mac"}}}, {number(s.relayed_bytes.phone), {{"from", "phone"}}}});
  counter(
      "tandem_relayed_messages_total", "Whole messages taken from admitted endpoints.",
      {{number(s.relayed_messages.mac), {{"from", "mac"}}}, {number(s.relayed_messages.phone), {{"from", "phone"}}}});
  gauge("tandem_shard_map_version", "Version of the shard map in force; 0 in direct mode.",
        {{number(r.version.value)}});
  gauge("tandem_shard_map_age_seconds", "Seconds since the last successful poll of the shard map.",
        {{to_seconds(s.map_age)}});
  gauge("tandem_owned_buckets", "Buckets that this host owns, of 65536.", {{number(r.owned_buckets)}});
  gauge("tandem_draining_buckets", "Relinquished buckets that still hold rooms.", {{number(r.draining.buckets)}});
  gauge("tandem_draining_rooms", "Rooms that wait for their eviction.", {{number(r.draining.rooms)}});
  gauge("tandem_egress_bytes_month", "Bytes sent in this calendar month (UTC).", {{number(r.egress_bytes_month)}});
  gauge("tandem_shedding", "1 while memory pressure keeps new rooms out.", {{r.shedding ? 1.0 : 0.0}});
  gauge("tandem_build_info", "1; the labels name the build.",
        {{1, {{"version", std::string(version())}, {"commit", std::string(commit())}}}});
  gauge("tandem_certificate_expiry_timestamp_seconds",
        "When the certificate in use expires, in seconds since 1970; 0: none.",
        {{s.certificate_expiry ? number(s.certificate_expiry->time_since_epoch().count()) : 0.0}});
  counter("process_cpu_seconds_total", "User and system CPU time spent, in seconds.", {{p.cpu_seconds}});
  gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", {{p.start_time_seconds}});
  gauge("process_resident_memory_bytes", "Resident memory in bytes.", {{p.resident_bytes}});
  gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", {{p.virtual_bytes}});
  gauge("process_open_fds", "Open file descriptors.", {{p.open_fds}});
  gauge("process_max_fds", "The limit of open file descriptors.", {{p.max_fds}});
  gauge("process_threads", "Threads of the process.", {{p.threads}});
  return out;
}

}  // namespace tandem::metrics
