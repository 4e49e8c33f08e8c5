#include "tandem/app/map_observed.hpp"

#include "tandem/app/map_fleet.hpp"
#include "tandem/core/json.hpp"
#include "tandem/shard/map_diff.hpp"

#include <algorithm>
#include <chrono>

namespace tandem::app {

namespace {

const Json* at(const Json& json, std::initializer_list<const char*> path) {
  const Json* here = &json;
  for (const char* key : path) {
    if (!here->is_object()) return nullptr;
    const auto it = here->find(key);
    if (it == here->end()) return nullptr;
    here = &*it;
  }
  return here;
}

std::optional<double> number_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* value = at(json, path);
  return value && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::uint64_t count_at(const Json& json, std::initializer_list<const char*> path) {
  const auto n = number_at(json, path);
  return n && *n > 0 ? static_cast<std::uint64_t>(*n) : 0;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges_of(const shard::ShardMap& map, const std::string& host) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
  for (const shard::Range& r : shard::merged(map.ranges()))
    if (r.host == host && !shard::is_nobody(host)) out.emplace_back(r.low, r.high);
  return out;
}

}  // namespace

std::optional<HostStatus> parse_status(std::string_view text) {
  const auto json = parse_json(text, {.max_bytes = 1024 * 1024, .max_depth = 16});
  if (!json || !json->is_object()) return {};
  const auto version = number_at(*json, {"map", "version"});
  HostStatus s;
  s.version = {version && *version > 0 ? static_cast<std::uint64_t>(*version) : 0};
  if (const Json* name = at(*json, {"hostname"}); name && name->is_string()) s.hostname = name->get<std::string>();
  if (const auto n = number_at(*json, {"owned", "buckets"})) s.buckets = static_cast<std::uint32_t>(*n);
  if (const Json* ranges = at(*json, {"owned", "ranges"}); ranges && ranges->is_array()) {
    s.ranges.emplace();
    for (const Json& r : *ranges)
      if (r.is_array() && r.size() == 2 && r[0].is_number_unsigned() && r[1].is_number_unsigned())
        s.ranges->emplace_back(r[0].get<std::uint32_t>(), r[1].get<std::uint32_t>());
  }
  for (const char* state : {"spliced", "mac_only", "phone_only"}) s.rooms += count_at(*json, {"rooms", state});
  s.draining_rooms = count_at(*json, {"draining", "rooms"});
  s.draining_buckets = count_at(*json, {"draining", "buckets"});
  s.expected_end_seconds = number_at(*json, {"draining", "expected_end_seconds"});
  s.map_age_seconds = number_at(*json, {"map", "age_seconds"});
  if (const Json* error = at(*json, {"last_fetch_error"}); error && error->is_object()) {
    const Json* cause = at(*error, {"cause"});
    s.fetch_error = cause && cause->is_string() ? cause->get<std::string>() : "other";
    s.fetch_error_seconds = number_at(*error, {"seconds"}).value_or(0);
  }
  return s;
}

void FleetObserver::diverges(HostView& host, const std::string& code, const std::string& message, double age_seconds,
                             std::optional<double> known_seconds) {
  const std::pair key(host.host, code);
  const double now = seconds_now();
  const auto before = first_seen_.find(key);
  seen_now_[key] = before != first_seen_.end() ? before->second : looked_before_ ? now : now - age_seconds;
  Divergence d{code, message, known_seconds.value_or(now - seen_now_[key]), false};
  // One poll (with its jitter), the wait, and the rooms one after another.
  const std::uint64_t rooms = host.observed ? host.observed->draining_rooms : 0;
  const double allowed = 1.1 * to_seconds(options_.poll_interval) + to_seconds(options_.drain_delay) +
                         static_cast<double>(rooms) / options_.eviction_rate;
  d.overdue = d.seconds > allowed;
  host.divergences.push_back(std::move(d));
}

void FleetObserver::judge(HostView& host, const shard::ShardMap& desired, double age_seconds) {
  if (!host.observed) return diverges(host, "unreachable", "its admin endpoint does not answer", age_seconds);
  const HostStatus& seen = *host.observed;
  if (!seen.hostname.empty() && seen.hostname != host.host)
    diverges(host, "identity_mismatch",
             "it calls itself " + seen.hostname + ": it serves what the map gives to that name", age_seconds);
  const std::string versions =
      "version " + std::to_string(seen.version.value) + " instead of " + std::to_string(desired.version().value);
  if (seen.version < desired.version())
    diverges(host, "stale_map", "it holds " + versions, age_seconds);
  else if (seen.version > desired.version())
    diverges(host, "owns_unpublished", "it holds " + versions + ", which was never published here", age_seconds);
  else if (seen.ranges && *seen.ranges != ranges_of(desired, seen.hostname.empty() ? host.host : seen.hostname))
    diverges(host, "owns_unpublished", "it holds this version but owns other buckets than the map gives it",
             age_seconds);
  if (seen.draining_rooms > 0 || seen.draining_buckets > 0)
    diverges(host, "draining", std::to_string(seen.draining_rooms) + " rooms still to leave", age_seconds);
  // A host that has polled well since then is past its error.
  if (!seen.fetch_error.empty() && seen.map_age_seconds.value_or(1e9) > 1.5 * to_seconds(options_.poll_interval))
    diverges(host, "fetch_failing", "it cannot fetch the map: " + seen.fetch_error, age_seconds,
             seen.fetch_error_seconds);
}

FleetView FleetObserver::look(const MapStore& store) {
  const shard::ShardMap desired = store.current();
  FleetView view;
  view.desired = desired.version();
  const auto now = std::chrono::system_clock::now();
  view.age_seconds =
      std::max(0.0, std::chrono::duration<double>(now - store.published_at(view.desired).value_or(now)).count());

  const auto shares = shard::shares(desired);
  const auto answers = read_of_all(options_.admins, "/status");
  seen_now_.clear();
  for (const auto& [name, url] : options_.admins) {
    HostView host;
    host.host = name;
    if (const auto share = shares.find(name); share != shares.end()) host.desired_buckets = share->second.buckets;
    if (const auto answer = answers.find(name); answer != answers.end()) host.observed = parse_status(answer->second);
    judge(host, desired, view.age_seconds);
    for (const Divergence& d : host.divergences) view.overdue = view.overdue || d.overdue;
    view.hosts.push_back(std::move(host));
  }
  first_seen_ = seen_now_;
  looked_before_ = true;
  return view;
}

OrderedJson to_json(const FleetView& view) {
  OrderedJson hosts = OrderedJson::array();
  for (const HostView& h : view.hosts) {
    OrderedJson host{{"host", h.host}, {"desired", {{"version", view.desired.value}, {"buckets", h.desired_buckets}}}};
    host["observed"] = nullptr;
    if (h.observed) {
      host["observed"] = {{"version", h.observed->version.value}};
      host["observed"]["buckets"] = h.observed->buckets ? OrderedJson(*h.observed->buckets) : OrderedJson(nullptr);
      host["observed"]["rooms"] = h.observed->rooms;
      host["observed"]["draining_rooms"] = h.observed->draining_rooms;
      host["observed"]["expected_end_seconds"] =
          h.observed->expected_end_seconds ? OrderedJson(*h.observed->expected_end_seconds) : OrderedJson(nullptr);
    }
    host["divergences"] = OrderedJson::array();
    for (const Divergence& d : h.divergences)
      host["divergences"].push_back(
          {{"code", d.code}, {"message", d.message}, {"seconds", d.seconds}, {"overdue", d.overdue}});
    hosts.push_back(std::move(host));
  }
  return {{"ok", !view.overdue},
          {"version", view.desired.value},
          {"age_seconds", view.age_seconds},
          {"hosts", std::move(hosts)}};
}

}  // namespace tandem::app
