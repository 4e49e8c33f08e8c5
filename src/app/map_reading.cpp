// show, check, diff, history: the commands that change nothing.
#include "tandem/app/map_command.hpp"
#include "tandem/app/map_source.hpp"
#include "tandem/config/units.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tandem::app {

using shard::ShardMap;

namespace {

// What somebody typed, on one line and without a word to the terminal. Bytes from 0x80 on are UTF-8's.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

std::string range_lines(const ShardMap& map) {
  std::string out;
  for (const shard::Range& r : map.ranges())
    out += "  " + std::to_string(r.low) + "-" + std::to_string(r.high) + "  " + r.host + "\n";
  return out;
}

std::string warning_lines(const std::vector<MapWarning>& warnings) {
  std::string out;
  for (const MapWarning& w : warnings) out += "warning: " + w.code + ": " + w.message + "\n";
  return out;
}

std::optional<std::uint64_t> as_version(const std::string& text) {
  std::uint64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc{} || end != text.data() + text.size()) return {};
  return v;
}

ShardMap published(MapStore& store, std::uint64_t version) {
  const ShardMap current = store.current();
  auto map = store.version({version}, current);
  if (!map)
    throw MapError("unknown_version",
                   "version " + std::to_string(version) +
                       " was never published here, or its history entry is gone; the current one is " +
                       std::to_string(current.version().value),
                   {{"value", version}});
  return *std::move(map);
}

// The larger of max-age and s-maxage over all Cache-Control lines; nothing where none speaks of caching at all.
struct CachePolicy {
  bool any = false;
  std::optional<std::uint64_t> ttl_seconds;
};

// More than a number can hold is for ever (RFC 9111, 1.2.2).
std::optional<std::uint64_t> delta_seconds(std::string_view text) {
  std::uint64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (text.empty() || ec == std::errc::invalid_argument || end != text.data() + text.size()) return {};
  return ec == std::errc::result_out_of_range ? UINT64_MAX : v;
}

CachePolicy cache_policy(const net::FetchAnswer& answer) {
  CachePolicy policy;
  for (const auto& [name, value] : answer.headers) {
    if (name != "cache-control") continue;
    std::size_t at = 0;
    while (at <= value.size()) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      std::string directive;
      for (const char c : std::string_view(value).substr(at, comma - at))
        if (c != ' ' && c != '\t' && c != '"') directive += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
      at = comma + 1;
      if (directive == "no-cache" || directive == "no-store") policy.any = true;
      for (const std::string_view key : {"max-age=", "s-maxage="}) {
        if (!directive.starts_with(key)) continue;
        const auto ttl = delta_seconds(std::string_view(directive).substr(key.size()));
        if (!ttl) continue;
        policy.any = true;
        policy.ttl_seconds = std::max(policy.ttl_seconds.value_or(0), *ttl);
      }
    }
  }
  return policy;
}

std::vector<MapWarning> answer_warnings(const net::FetchAnswer& answer, const std::string& url,
                                        Duration poll_interval) {
  std::vector<MapWarning> out;
  if (const auto coding = answer.header("content-encoding"))
    out.push_back({"content_encoding",
                   url + " is answered with Content-Encoding " + std::string(*coding) + ": relays refuse it"});
  if (!is_url(url) || url.starts_with("file:")) return out;
  const CachePolicy policy = cache_policy(answer);
  if (!policy.any)
    out.push_back(
        {"cache_control_missing",
         url + " says nothing of caching: a cache may keep an old map for as long as it likes; serve max-age=5"});
  if (policy.ttl_seconds && seconds(std::min<std::uint64_t>(*policy.ttl_seconds, 1'000'000'000)) >= poll_interval)
    out.push_back({"cache_ttl_too_long", url + " may be cached for " + std::to_string(*policy.ttl_seconds) +
                                             " s, not below the poll interval of " +
                                             config::format_duration(poll_interval) +
                                             ": hosts would adopt a map later than foretold"});
  return out;
}

std::size_t serving_hosts(const ShardMap& map) {
  return static_cast<std::size_t>(
      std::count_if(map.hosts().begin(), map.hosts().end(), [](const std::string& h) { return !shard::is_nobody(h); }));
}

ShardMap any_map(MapCommand& c, const std::string& source, std::optional<MapVersion>& version) {
  if (const auto v = as_version(source)) {
    version = MapVersion{*v};
    return published(c.need_store(), *v);
  }
  const std::string text = is_url(source) ? fetch_map(source).body : read_source(source);
  shard::Draft draft = parse_draft(source, text);
  version = draft.drafted_from;
  return std::move(draft.map);
}

OrderedJson version_or_null(const std::optional<MapVersion>& v) {
  return v ? OrderedJson(v->value) : OrderedJson(nullptr);
}

}  // namespace

int map_show(MapCommand& c, std::optional<std::uint64_t> version) {
  MapStore& store = c.need_store();
  const ShardMap current = store.current();
  const ShardMap map = version ? published(store, *version) : current;
  const auto entry = store.entry(map.version());
  std::vector<MapWarning> warnings = map_warnings(map);
  if (map.version() == current.version())
    for (MapWarning& w : upload_warnings(store, current.version())) warnings.push_back(std::move(w));

  OrderedJson hosts = OrderedJson::array();
  std::string text = "version " + std::to_string(map.version().value);
  if (entry) text += ", published " + entry->at + " by " + printable(entry->by) + " (" + entry->action + ")";
  text += "\n" + range_lines(map);
  const auto all = shares(map);
  for (const std::string& host : map.hosts()) {
    const shard::HostShare& share = all.at(host);
    hosts.push_back({{"host", host}, {"buckets", share.buckets}, {"arcs", share.arcs}});
    text += host + ": " + std::to_string(share.buckets) + " buckets in " + std::to_string(share.arcs) +
            (share.arcs == 1 ? " arc\n" : " arcs\n");
  }
  const OrderedJson out{{"ok", true},
                        {"version", map.version().value},
                        {"ranges", to_json(map.ranges())},
                        {"hosts", hosts},
                        {"unowned_buckets", unowned_buckets(map)},
                        {"at", entry ? OrderedJson(entry->at) : OrderedJson(nullptr)},
                        {"by", entry ? OrderedJson(entry->by) : OrderedJson(nullptr)},
                        {"warnings", to_json(warnings)}};
  c.out.result(out, text + warning_lines(warnings));
  return kOk;
}

int map_check(MapCommand& c, const std::string& source, bool strict) {
  std::vector<MapWarning> warnings;
  std::string name = source, text;
  if (source.empty()) {
    name = c.need_store().map_path();
    text = c.need_store().text();
  } else if (is_url(source)) {
    const net::FetchAnswer answer = fetch_map(source, true);
    warnings = answer_warnings(answer, source, c.options.poll_interval);
    text = answer.body;
  } else {
    text = read_source(source);
  }
  const bool coded = !warnings.empty() && warnings.front().code == "content_encoding";
  if (coded && std::holds_alternative<shard::MapFault>(ShardMap::parse(text)))
    throw MapError("fetch_failed", name + ": other: " + warnings.front().message,
                   {{"cause", "other"}, {"value", name}});
  const ShardMap map = parse_map(name, text);
  for (MapWarning& w : map_warnings(map)) warnings.push_back(std::move(w));
  if (source.empty())
    for (MapWarning& w : upload_warnings(c.need_store(), map.version())) warnings.push_back(std::move(w));

  OrderedJson found{{"version", map.version().value},
                    {"hosts", serving_hosts(map)},
                    {"ranges", map.ranges().size()},
                    {"warnings", to_json(warnings)}};
  if (strict && !warnings.empty()) {
    const std::string& first = warnings.front().message;
    throw MapError(
        warnings.front().code,
        (first.starts_with(name) ? "" : name + ": ") + first + (warnings.size() > 1 ? " (and further warnings)" : ""),
        found);
  }
  OrderedJson out{{"ok", true}};
  out.update(found);
  c.out.result(out, name + ": version " + std::to_string(map.version().value) +
                        " is valid: " + std::to_string(serving_hosts(map)) + " hosts, " +
                        std::to_string(map.ranges().size()) + " ranges\n" + warning_lines(warnings));
  return kOk;
}

int map_diff(MapCommand& c, const std::vector<std::string>& from_to) {
  std::optional<MapVersion> from_version, to_version;
  std::optional<ShardMap> from;
  if (from_to.size() > 1) {
    from = any_map(c, from_to.front(), from_version);
  } else {
    from = c.need_store().current();
    from_version = from->version();
  }
  const ShardMap to = any_map(c, from_to.back(), to_version);
  const auto moves = moves_between(*from, to);
  const auto hosts = host_changes(*from, to);
  std::string text = std::to_string(shard::moved_buckets(moves)) + " buckets differ\n";
  for (const shard::Move& m : moves)
    text += "  " + std::to_string(m.low) + "-" + std::to_string(m.high) + "  " + m.from + " -> " + m.to + "\n";
  c.out.result({{"ok", true},
                {"from", version_or_null(from_version)},
                {"to", version_or_null(to_version)},
                {"moved_buckets", shard::moved_buckets(moves)},
                {"moves", to_json(moves)},
                {"hosts", to_json(hosts)}},
               text);
  return kOk;
}

int map_complete(MapCommand& c, const std::string& kind) {
  MapStore& store = c.need_store();
  const ShardMap map = store.current();
  if (kind == "hosts") {
    for (const std::string& host : map.hosts()) c.out.say(host + "\n");
  } else {
    for (const HistoryEntry& e : store.history(map.version(), 100)) c.out.say(std::to_string(e.version.value) + "\n");
  }
  return kOk;
}

int map_history(MapCommand& c, std::size_t limit) {
  MapStore& store = c.need_store();
  for (const HistoryEntry& e : store.history(store.current().version(), limit)) {
    c.out.result({{"version", e.version.value},
                  {"at", e.at},
                  {"by", e.by},
                  {"action", e.action},
                  {"message", e.message},
                  {"moved_buckets", e.moved_buckets}},
                 std::to_string(e.version.value) + "  " + e.at + "  " + printable(e.by) + "  " + e.action + "  " +
                     std::to_string(e.moved_buckets) + " buckets" +
                     (e.message.empty() ? "" : "  " + printable(e.message)) + "\n");
  }
  return kOk;
}

}  // namespace tandem::app
