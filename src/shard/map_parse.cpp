// From JSON to a map. Faults of form come before faults of content, so that one map always has one verdict.
#include "shard/map_fault.hpp"
#include "tandem/core/json.hpp"

#include <nlohmann/json.hpp>

namespace tandem::shard {

namespace {

std::string shown(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }

MapFault not_an_integer(const std::string& where, const Json* value) {
  return fault(MapFaultKind::malformed, where, value ? shown(*value) : "nothing", "where an integer belongs");
}

const Json* member(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::optional<MapFault> check_form(const Json& range, std::size_t i) {
  if (!range.is_object()) return fault(MapFaultKind::malformed, range_path(i), shown(range), "where an object belongs");
  for (const char* key : {"low", "high"}) {
    const Json* value = member(range, key);
    if (!value || !value->is_number_integer()) return not_an_integer(range_path(i, key), value);
  }
  const Json* host = member(range, "host");
  if (!host || !host->is_string())
    return fault(MapFaultKind::malformed, range_path(i, "host"), host ? shown(*host) : "nothing",
                 "where a string belongs");
  return {};
}

// is_number_integer() holds for both signs; get<int64> of a huge unsigned one would wrap.
std::optional<std::uint16_t> bucket_in(const Json& value) {
  if (!value.is_number_unsigned()) {
    const auto n = value.get<std::int64_t>();
    if (n < 0 || n >= kBucketCount) return {};
    return static_cast<std::uint16_t>(n);
  }
  const auto n = value.get<std::uint64_t>();
  if (n >= kBucketCount) return {};
  return static_cast<std::uint16_t>(n);
}

std::variant<Range, MapFault> read_range(const Json& json, std::size_t i) {
  Range range;
  range.host = json["host"].get<std::string>();
  if (auto bad = check_host(range.host, i)) return *std::move(bad);
  for (const char* key : {"low", "high"}) {
    const auto bucket = bucket_in(json[key]);
    if (!bucket)
      return fault(MapFaultKind::invalid_range, range_path(i, key), shown(json[key]),
                   "is not a bucket from 0 to 65535");
    (key[0] == 'l' ? range.low : range.high) = *bucket;
  }
  return range;
}

MapFault of_json_fault(const JsonFault& f) {
  if (f.error == Error::too_large) return fault(MapFaultKind::too_large, f.path, "", "is larger than 1 MiB");
  std::string says = f.what.empty() ? std::string(to_string(f.error)) : f.what;
  if (f.line != 0) says += " at line " + std::to_string(f.line) + " column " + std::to_string(f.column);
  return fault(MapFaultKind::malformed, f.path, "", says);
}

std::variant<std::vector<Range>, MapFault> read_ranges(const Json& list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (auto bad = check_form(list[i], i)) return *std::move(bad);
  std::vector<Range> ranges;
  ranges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto range = read_range(list[i], i);
    if (auto* bad = std::get_if<MapFault>(&range)) return std::move(*bad);
    ranges.push_back(std::get<Range>(std::move(range)));
  }
  return ranges;
}

std::variant<std::optional<MapVersion>, MapFault> read_version(const Json& root, bool required) {
  const Json* version = member(root, "version");
  if (!version && !required) return std::optional<MapVersion>{};
  if (!version || !version->is_number_integer()) return not_an_integer("version", version);
  if (!version->is_number_unsigned() && version->get<std::int64_t>() < 0)
    return fault(MapFaultKind::negative_version, "version", shown(*version), "is below zero");
  const auto value = version->get<std::uint64_t>();
  if (value > kMaxMapVersion) return fault(MapFaultKind::malformed, "version", shown(*version), "is above 2^53-1");
  return std::optional(MapVersion{value});
}

}  // namespace

std::variant<Draft, MapFault> Draft::parse(std::string_view json, bool version_required) {
  if (json.size() > kMaxMapBytes)
    return fault(MapFaultKind::too_large, "", std::to_string(json.size()) + " bytes", "is larger than 1 MiB");
  Json root;
  JsonFault bad_json;
  if (!parse_json_file(json, {.max_bytes = kMaxMapBytes, .max_depth = 16}, false, root, bad_json))
    return of_json_fault(bad_json);
  if (!root.is_object()) return fault(MapFaultKind::malformed, "", root.type_name(), "where an object belongs");
  auto version = read_version(root, version_required);
  const Json* list = member(root, "ranges");
  if (auto* bad = std::get_if<MapFault>(&version); bad && bad->kind == MapFaultKind::malformed) return std::move(*bad);
  if (!list || !list->is_array())
    return fault(MapFaultKind::malformed, "ranges", list ? shown(*list) : "nothing", "where a list belongs");
  if (auto* bad = std::get_if<MapFault>(&version)) {
    for (std::size_t i = 0; i < list->size(); ++i)
      if (auto form = check_form((*list)[i], i)) return *std::move(form);
    return std::move(*bad);
  }
  auto ranges = read_ranges(*list);
  if (auto* bad = std::get_if<MapFault>(&ranges)) return std::move(*bad);
  const auto drafted_from = std::get<std::optional<MapVersion>>(version);
  auto map = ShardMap::make(drafted_from.value_or(MapVersion{}), std::get<std::vector<Range>>(std::move(ranges)));
  if (auto* bad = std::get_if<MapFault>(&map)) return std::move(*bad);
  return Draft{drafted_from, std::get<ShardMap>(std::move(map))};
}

std::variant<ShardMap, MapFault> ShardMap::parse(std::string_view json) {
  auto draft = Draft::parse(json, true);
  if (auto* bad = std::get_if<MapFault>(&draft)) return std::move(*bad);
  return std::get<Draft>(std::move(draft)).map;
}

}  // namespace tandem::shard
