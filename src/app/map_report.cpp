// Results as JSON and as text for people.
#include "tandem/app/map_publish.hpp"

#include <cstdio>

namespace tandem::app {

OrderedJson to_json(const std::vector<shard::Move>& moves) {
  OrderedJson out = OrderedJson::array();
  for (const shard::Move& m : moves) out.push_back({{"low", m.low}, {"high", m.high}, {"from", m.from}, {"to", m.to}});
  return out;
}

OrderedJson to_json(const std::map<std::string, shard::HostChange>& hosts) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [host, change] : hosts) out[host] = {{"before", change.before}, {"after", change.after}};
  return out;
}

OrderedJson to_json(const std::vector<MapWarning>& warnings) {
  OrderedJson out = OrderedJson::array();
  for (const MapWarning& w : warnings) out.push_back({{"code", w.code}, {"message", w.message}});
  return out;
}

OrderedJson to_json(const shard::Ranges& ranges) {
  OrderedJson out = OrderedJson::array();
  for (const shard::Range& r : ranges) out.push_back({{"low", r.low}, {"high", r.high}, {"host", r.host}});
  return out;
}

namespace {

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}
OrderedJson or_null(const std::optional<MapVersion>& v) { return v ? OrderedJson(v->value) : OrderedJson(nullptr); }

std::string seconds_text(double s) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f s", s);
  return text;
}

std::string plural(std::uint64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

}  // namespace

OrderedJson to_json(const Published& p) {
  OrderedJson out{{"ok", true},
                  {"action", p.action},
                  {"base", or_null(p.base)},
                  {"version", p.version.value},
                  {"published", p.published},
                  {"phase", or_null(p.phase)},
                  {"moved_buckets", shard::moved_buckets(p.moves)},
                  {"moves", to_json(p.moves)},
                  {"hosts", to_json(p.hosts)},
                  {"rooms_affected", or_null(p.forecast.rooms_affected)},
                  {"convergence_seconds", p.forecast.convergence_seconds},
                  {"uploaded", or_null(p.uploaded)},
                  {"warnings", to_json(p.warnings)},
                  {"path", p.path}};
  if (p.of) out["of"] = p.of->value;
  return out;
}

std::string describe_moves(const std::vector<shard::Move>& moves, std::size_t at_most) {
  std::string out;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (i == at_most) return out + ", and " + plural(moves.size() - i, "further range");
    const shard::Move& m = moves[i];
    out += (i > 0 ? ", " : "") + std::to_string(m.low) + (m.high > m.low ? "-" + std::to_string(m.high) : "") +
           " from " + m.from + " to " + m.to;
  }
  return out;
}

std::string preview_text(const Published& p) {
  const std::uint32_t moved = shard::moved_buckets(p.moves);
  std::string out = p.action + ": version " + std::to_string(p.version.value) +
                    (p.base ? " from version " + std::to_string(p.base->value) : "") + "\n";
  out += "  moves " + plural(moved, "bucket");
  char share[40];
  std::snprintf(share, sizeof share, " (%.1f %% of the ring)\n", 100.0 * moved / kBucketCount);
  out += share;
  constexpr std::size_t kShown = 40;
  for (std::size_t i = 0; i < p.moves.size() && i < kShown; ++i) {
    const shard::Move& m = p.moves[i];
    out += "    " + std::to_string(m.low) + "-" + std::to_string(m.high) + "  " + m.from + " -> " + m.to + "\n";
  }
  if (p.moves.size() > kShown) out += "    and " + plural(p.moves.size() - kShown, "further range") + "\n";
  for (const auto& [host, change] : p.hosts)
    if (change.before != change.after)
      out += "  " + host + ": " + std::to_string(change.before) + " -> " + std::to_string(change.after) + " buckets\n";
  out += "  rooms affected: " + (p.forecast.rooms_affected ? std::to_string(*p.forecast.rooms_affected) : "unknown") +
         "\n";
  out += "  should converge in " + seconds_text(p.forecast.convergence_seconds) + " and one poll\n";
  if (moved > shard::kLargeMove)
    out +=
        "  that is more than a quarter of the ring at once: moving it in smaller parts disturbs fewer rooms at a "
        "time\n";
  for (const MapWarning& w : p.warnings) out += "  warning: " + w.code + ": " + w.message + "\n";
  return out;
}

std::vector<MapWarning> map_warnings(const shard::ShardMap& map) {
  std::vector<MapWarning> out;
  if (const std::uint32_t n = shard::unowned_buckets(map); n > 0)
    out.push_back({"unowned_buckets", plural(n, "bucket") + " without an owner: their rooms cannot be joined"});
  if (!shard::is_merged(map.ranges()))
    out.push_back({"unmerged_ranges", "adjacent ranges of one host could be one; the next edit merges them"});
  return out;
}

std::vector<MapWarning> upload_warnings(const MapStore& store, MapVersion current) {
  if (store.upload_command().empty()) return {};
  const auto uploaded = store.uploaded();
  if (uploaded && *uploaded >= current) return {};
  return {{"not_uploaded",
           "version " + std::to_string(current.value) + " is written, not uploaded (the last upload was " +
               (uploaded ? "version " + std::to_string(uploaded->value) : "none") + "); publish --again uploads it"}};
}

}  // namespace tandem::app
