#include "tandem/app/map_console.hpp"

#include "app/console/assets.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/json.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace tandem::app {

using shard::ShardMap;

namespace {

MapError bad_edit(const std::string& field, const std::string& value) {
  return usage_error(field, value, "is missing or of the wrong kind");
}

std::string text_in(const OrderedJson& edit, const char* key) {
  const auto it = edit.find(key);
  if (it == edit.end() || !it->is_string()) throw bad_edit(key, it == edit.end() ? "" : it->dump());
  return it->get<std::string>();
}

std::optional<std::uint32_t> number_in(const OrderedJson& edit, const char* key, std::uint64_t most) {
  const auto it = edit.find(key);
  if (it == edit.end() || it->is_null()) return {};
  if (!it->is_number_unsigned() || it->get<std::uint64_t>() > most) throw bad_edit(key, it->dump());
  return it->get<std::uint32_t>();
}

Bucket bucket_in(const OrderedJson& edit, const char* key) {
  const auto n = number_in(edit, key, kBucketCount - 1);
  if (!n) throw bad_edit(key, "");
  return {static_cast<std::uint16_t>(*n)};
}

shard::Ranges one_edit(const MapStore& store, const ShardMap& map, const OrderedJson& edit) {
  if (!edit.is_object()) throw bad_edit("edit", edit.dump());
  const std::string op = text_in(edit, "op");
  shard::Edited edited;
  if (op == "add") {
    edited =
        add_host(map, text_in(edit, "host"),
                 {.at = number_in(edit, "at", kBucketCount - 1), .buckets = number_in(edit, "buckets", kBucketCount)});
  } else if (op == "remove") {
    const bool into = edit.contains("into") && edit["into"].is_string() && !edit["into"].get<std::string>().empty();
    edited = remove_host(map, text_in(edit, "host"), into ? std::optional(text_in(edit, "into")) : std::nullopt);
  } else if (op == "move") {
    edited = move_range(map, bucket_in(edit, "low"), bucket_in(edit, "high"), text_in(edit, "host"),
                        edit.value("new", false));
  } else if (op == "rebalance") {
    edited = rebalance(map);
  } else if (op == "rollback") {
    const auto version = edit.find("version");
    if (version == edit.end() || !version->is_number_unsigned()) throw bad_edit("version", "");
    const MapVersion v{version->get<std::uint64_t>()};
    const auto old = store.version(v, store.current());
    if (!old)
      throw MapError("unknown_version", "version " + std::to_string(v.value) + " was never published here",
                     {{"value", v.value}});
    return old->ranges();
  } else {
    throw bad_edit("op", op);
  }
  if (const auto* fault = std::get_if<shard::EditFault>(&edited)) throw refused_edit(*fault);
  return std::get<shard::Ranges>(std::move(edited));
}

HttpReply json_reply(int status, const OrderedJson& body) {
  return {status,
          "application/json",
          body.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n",
          {{"Cache-Control", "no-store"}}};
}

HttpReply asset(std::string_view type, std::string_view body) {
  return {200,
          std::string(type) + "; charset=utf-8",
          std::string(body),
          {{"Cache-Control", "no-store"},
           {"Referrer-Policy", "no-referrer"},
           {"Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action "
            "'none'; "
            "frame-ancestors 'none'"}}};
}

// A page of another site must not reach the console through a name that resolves to loopback.
bool is_loopback_host(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) host = host.substr(0, colon);
  if (host == "localhost" || host == "[::1]") return true;
  const auto ip = config::IpAddress::parse(host);
  return ip && ip->is_loopback();
}

std::string action_of(const OrderedJson& edits) {
  if (edits.size() == 1 && edits[0].is_object()) return edits[0].value("op", "edit");
  return "edit";
}

}  // namespace

shard::Ranges apply_edits(const MapStore& store, const ShardMap& current, const OrderedJson& edits) {
  if (!edits.is_array() || edits.size() > 1000) throw bad_edit("edits", "");
  shard::Ranges ranges = shard::merged(current.ranges());
  for (const OrderedJson& edit : edits) {
    const auto map = ShardMap::make(current.version(), ranges);
    ranges = shard::merged(one_edit(store, std::get<ShardMap>(map), edit));
  }
  return ranges;
}

MapConsole::MapConsole(MapStore& store, const MapOptions& options, std::string token)
    : store_(store), options_(options), token_(std::move(token)), fleet_(options) {}

OrderedJson MapConsole::state() {
  const ShardMap current = store_.current();
  const auto entry = store_.entry(current.version());
  auto warnings = map_warnings(current);
  for (MapWarning& w : upload_warnings(store_, current.version())) warnings.push_back(std::move(w));
  const auto shares = shard::shares(current);
  OrderedJson hosts = OrderedJson::array();
  for (const std::string& host : current.hosts())
    hosts.push_back({{"host", host},
                     {"buckets", shares.at(host).buckets},
                     {"arcs", shares.at(host).arcs},
                     {"nobody", shard::is_nobody(host)}});
  OrderedJson out{{"ok", true},
                  {"store", store_.folder().string()},
                  {"version", current.version().value},
                  {"ranges", to_json(current.ranges())}};
  out["hosts"] = hosts;
  out["at"] = entry ? OrderedJson(entry->at) : OrderedJson(nullptr);
  out["by"] = entry ? OrderedJson(entry->by) : OrderedJson(nullptr);
  out["warnings"] = to_json(warnings);
  const std::lock_guard guard(fleet_mutex_);
  out["fleet"] = to_json(fleet_.look(store_));
  return out;
}

OrderedJson MapConsole::history() const {
  OrderedJson entries = OrderedJson::array();
  for (const HistoryEntry& e : store_.history(store_.current().version(), 200))
    entries.push_back({{"version", e.version.value},
                       {"at", e.at},
                       {"by", e.by},
                       {"action", e.action},
                       {"message", e.message},
                       {"moved_buckets", e.moved_buckets}});
  return {{"ok", true}, {"history", entries}};
}

OrderedJson MapConsole::difference(std::string_view versions) const {
  const ShardMap current = store_.current();
  const std::size_t slash = versions.find('/');
  std::vector<ShardMap> maps;
  for (const std::string_view text :
       {versions.substr(0, slash), slash == std::string_view::npos ? "" : versions.substr(slash + 1)}) {
    MapVersion v;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v.value);
    auto map = ec == std::errc{} && end == text.data() + text.size() ? store_.version(v, current) : std::nullopt;
    if (!map)
      throw MapError("unknown_version", "version " + std::string(text) + " was never published here",
                     {{"value", std::string(text)}});
    maps.push_back(*std::move(map));
  }
  const auto moves = moves_between(maps[0], maps[1]);
  return {{"ok", true},
          {"from", maps[0].version().value},
          {"to", maps[1].version().value},
          {"moved_buckets", shard::moved_buckets(moves)},
          {"moves", to_json(moves)},
          {"hosts", to_json(host_changes(maps[0], maps[1]))},
          {"ranges", to_json(maps[1].ranges())}};
}

OrderedJson MapConsole::publish(const OrderedJson& request, bool preview_only) {
  const auto base = request.find("base");
  const auto edits = request.find("edits");
  if (base == request.end() || !base->is_number_unsigned()) throw bad_edit("base", "");
  if (edits == request.end()) throw bad_edit("edits", "");
  MapOptions options = options_;
  options.yes = true;  // the page has asked
  options.dry_run = preview_only;
  options.two_phase = request.value("two_phase", false);
  options.message = request.value("message", std::string{});

  shard::Ranges drafted;
  MapChange change;
  change.action = action_of(*edits);
  change.drafted_from = MapVersion{base->get<std::uint64_t>()};
  change.edit = [&](const ShardMap& current) { return drafted = apply_edits(store_, current, *edits); };
  if (change.action == "rollback") change.of = [&] { return MapVersion{(*edits)[0]["version"].get<std::uint64_t>()}; };
  // A lost race keeps what was drafted: the edits laid over the version they were made for.
  if (!preview_only) {
    const ShardMap current = store_.current();
    if (const auto from = store_.version(*change.drafted_from, current)) {
      const auto map = ShardMap::make(from->version(), apply_edits(store_, *from, *edits));
      if (const auto* made = std::get_if<ShardMap>(&map)) change.draft_text = made->to_json();
    }
  }
  OrderedJson results = OrderedJson::array();
  MapPublisher publisher(store_, options,
                         {.preview = [](const Published&, const std::string&) {},
                          .ask = [](MapVersion) { return true; },
                          .report = [&](const Published& p) { results.push_back(to_json(p)); },
                          .progress = [](const std::string&) {},
                          .interrupted = [] { return false; }});
  publisher.run(change);
  return {{"ok", true}, {"results", results}, {"ranges", to_json(drafted)}};
}

HttpReply MapConsole::api(const HttpRequest& request, std::string_view what) {
  try {
    if (request.method == "GET") {
      if (what == "state") return json_reply(200, state());
      if (what == "history") return json_reply(200, history());
      if (what.starts_with("diff/")) return json_reply(200, difference(what.substr(5)));
    } else if (request.method == "POST" && (what == "preview" || what == "publish")) {
      // A form of another site can send neither this type nor a foreign Origin unseen.
      if (!request.header("content-type").starts_with("application/json"))
        return {415, "text/plain", "application/json is wanted\n", {}};
      if (const auto origin = request.header("origin");
          !origin.empty() && origin != "http://" + std::string(request.header("host")))
        return {403, "text/plain", "forbidden\n", {}};
      if (!parse_json(request.body)) throw bad_edit("body", "");
      const OrderedJson body = OrderedJson::parse(request.body);
      if (!body.is_object()) throw bad_edit("body", "");
      return json_reply(200, publish(body, what == "preview"));
    }
    return {404, "text/plain", "not found\n", {}};
  } catch (const MapError& error) {
    return json_reply(error.code() == "conflict" ? 409 : 400, error.object());
  } catch (const nlohmann::json::exception&) {  // a member of another type than value() was told
    return json_reply(400, bad_edit("body", "").object());
  }
}

HttpReply MapConsole::answer(const HttpRequest& request) {
  if (!is_loopback_host(request.header("host"))) return {403, "text/plain", "forbidden\n", {}};
  const std::string_view path = request.path;
  const std::string prefix = "/" + token_ + "/";
  if (path.size() < prefix.size() || !equal_secrets(bytes_of(path.substr(0, prefix.size())), bytes_of(prefix)))
    return {404, "text/plain", "not found: open the whole URL that the console printed\n", {}};
  const std::string_view rest = path.substr(prefix.size());
  if (rest.starts_with("api/")) return api(request, rest.substr(4));
  if (request.method != "GET" && request.method != "HEAD")
    return {405, "text/plain", "method not allowed\n", {{"Allow", "GET, HEAD"}}};
  if (rest.empty()) return asset("text/html", console::kHtml);
  if (rest == "console.css") return asset("text/css", console::kCss);
  if (rest == "console.js") return asset("text/javascript", console::kScript);
  if (rest == "ring.js") return asset("text/javascript", console::kRingScript);
  return {404, "text/plain", "not found\n", {}};
}

}  // namespace tandem::app
