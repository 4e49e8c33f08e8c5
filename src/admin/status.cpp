#include "tandem/admin/status.hpp"

#include "tandem/core/version.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tandem::admin {

namespace {

using Object = nlohmann::ordered_json;

double rounded(double value, double steps) { return std::round(value * steps) / steps; }
double in_seconds(Duration d) { return rounded(to_seconds(d), 1000); }

Object in_seconds_or_null(const std::optional<Duration>& d) { return d ? Object(in_seconds(*d)) : Object(nullptr); }

Object text_or_null(const std::string& text) { return text.empty() ? Object(nullptr) : Object(text); }

Object fault(const std::optional<FetchFault>& f) {
  if (!f) return nullptr;
  return {
      {"cause", f->cause}, {"kind", text_or_null(f->kind)},   {"value", text_or_null(f->value)}, {"detail", f->detail},
      {"polls", f->polls}, {"seconds", in_seconds(f->lasted)}};
}

Object map_of(const Status& s) {
  return {{"version", s.relay.version.value}, {"floor", s.relay.floor.value}, {"age_seconds", in_seconds(s.map_age)}};
}

// Bytes that came from elsewhere (a map's value) may be no UTF-8; they are shown as replacement characters.
std::string dump(const Object& o) { return o.dump(-1, ' ', false, Object::error_handler_t::replace) + "\n"; }

}  // namespace

std::string status_json(const Status& s) {
  const auto& r = s.relay;
  Object ranges = Object::array(), hour = Object::array();
  for (const auto& [low, high] : r.owned_ranges) ranges.push_back({low.value, high.value});
  for (const double rate : s.last_hour) hour.push_back(static_cast<std::uint64_t>(rate));
  Object certificate = nullptr;
  if (s.certificate_expiry)
    certificate = {{"expires_at", s.certificate_expiry->time_since_epoch().count()},
                   {"expires_in_seconds", (*s.certificate_expiry - s.now).count()}};
  return dump({
      {"hostname", s.hostname},
      {"version", version()},
      {"commit", commit()},
      {"uptime_seconds", in_seconds(s.uptime)},
      {"mode", r.resolved ? "resolved" : "direct"},
      {"ready", !s.not_ready},
      {"not_ready", text_or_null(s.not_ready.value_or(""))},
      {"stopping", r.stopping},
      {"shedding", r.shedding},
      {"map", map_of(s)},
      {"owned", {{"buckets", r.owned_buckets}, {"ranges", ranges}}},
      {"draining",
       {{"buckets", r.draining.buckets},
        {"rooms", r.draining.rooms},
        {"began_with_rooms", s.drain_began_with},
        {"next_eviction_seconds", in_seconds_or_null(r.draining.next_eviction)},
        {"expected_end_seconds", in_seconds_or_null(r.draining.expected_end)}}},
      {"rooms",
       {{"spliced", r.rooms.spliced},
        {"mac_only", r.rooms.mac_only},
        {"phone_only", r.rooms.phone_only},
        {"pending", r.rooms.pending}}},
      {"sockets", {{"handshake", s.handshaking}, {"pending", r.sockets.pending}, {"admitted", r.sockets.admitted}}},
      {"throughput", {{"bytes_per_second", rounded(s.bytes_per_second, 1)}, {"last_hour", hour}}},
      {"egress_bytes_month", r.egress_bytes_month},
      {"certificate", certificate},
      {"last_fetch_error", fault(s.fetch_failing)},
      {"recovered_fetch_error", fault(s.fetch_recovered)},
  });
}

std::string explain_json(const relay::Explanation& e, const Status& s) {
  return dump({
      {"hostname", s.hostname},
      {"mode", s.relay.resolved ? "resolved" : "direct"},
      {"tag", e.tag},
      {"bucket", e.bucket.value},
      {"owner", text_or_null(e.owner)},
      {"ours", e.ours},
      {"draining", e.draining},
      {"state", e.state},
      {"established", e.known ? Object(e.established) : Object(nullptr)},
      {"map", map_of(s)},
      {"owned_buckets", s.relay.owned_buckets},
      {"last_fetch_error", fault(s.fetch_failing)},
      {"quota_resets_in_seconds", in_seconds_or_null(e.quota_resets_in)},
      {"mac_refusals", e.mac_refusals},
      {"phone_refusals", e.phone_refusals},
  });
}

}  // namespace tandem::admin
