#include "tandem/config/schema.hpp"
#include "tandem/config/units.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace tandem::config {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr const char* kDurationPattern = "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$";
constexpr const char* kSizePattern = "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|TiB)$";

std::string type_name(const Rule& rule) {
  std::string out;
  switch (rule.type) {
    case Type::text: out = "string"; break;
    case Type::path: out = "path"; break;
    case Type::url: out = "URL"; break;
    case Type::authority: out = "bare host name"; break;
    case Type::flag: out = "true or false"; break;
    case Type::count: out = "whole number, at least 1"; break;
    case Type::rate: out = "number above 0"; break;
    case Type::percent: out = "number, 0 to 100"; break;
    case Type::duration: out = rule.zero_allowed ? "duration, may be 0" : "duration"; break;
    case Type::size:
      out = "size";
      if (rule.least.value > 1) out += ", " + format_size(rule.least) + " to " + format_size(rule.most);
      break;
    case Type::address: out = "address:port"; break;
    case Type::addresses: out = "list of address:port"; break;
    case Type::networks: out = "list of address ranges"; break;
    case Type::egress: out = "size or object"; break;
    case Type::choice:
      for (const std::string& word : rule.choices) out += (out.empty() ? "`" : ", `") + word + "`";
      break;
  }
  return rule.nullable ? out + ", or null" : out;
}

// The JSON Schema of one value. Stricter checks (authorities, URLs, combinations) are the program's own.
Ordered value_schema(const Rule& rule) {
  Ordered out;
  switch (rule.type) {
    case Type::flag: out["type"] = "boolean"; break;
    case Type::count: out = {{"type", "integer"}, {"minimum", 1}, {"maximum", 4294967295}}; break;
    case Type::rate: out = {{"type", "number"}, {"minimum", kMinRate}, {"maximum", kMaxRate}}; break;
    case Type::percent: out = {{"type", "number"}, {"minimum", 0}, {"maximum", 100}}; break;
    case Type::duration: out = {{"type", "string"}, {"pattern", kDurationPattern}}; break;
    case Type::size: out = {{"type", "string"}, {"pattern", kSizePattern}}; break;
    case Type::address: out = {{"type", "string"}, {"pattern", ":[0-9]{1,5}$"}}; break;
    case Type::addresses:
      out = {{"type", "array"}, {"minItems", 1}, {"items", {{"type", "string"}, {"pattern", ":[0-9]{1,5}$"}}}};
      break;
    case Type::networks: out = {{"type", "array"}, {"items", {{"type", "string"}}}}; break;
    case Type::choice: out = {{"type", "string"}, {"enum", rule.choices}}; break;
    case Type::egress: {
      Ordered object = {{"type", "object"}, {"additionalProperties", false}, {"required", {"limit"}}};
      object["properties"] = {{"limit", {{"type", "string"}, {"pattern", kSizePattern}}},
                              {"hard", {{"type", "boolean"}}}};
      out["anyOf"] = Ordered::array({Ordered{{"type", "string"}, {"pattern", kSizePattern}}, object});
      break;
    }
    default: out = {{"type", "string"}, {"minLength", 1}};
  }
  if (!rule.nullable) return out;
  Ordered either;
  either["anyOf"] = Ordered::array({out, Ordered{{"type", "null"}}});
  return either;
}

Ordered key_schema(const Key& key) {
  Ordered out = value_schema(key.rule);
  out["description"] = key.doc;
  if (!key.fallback.empty()) out["default"] = Ordered::parse(key.fallback);
  return out;
}

Ordered section_schema(const Section& section) {
  Ordered object = {{"type", "object"}, {"additionalProperties", false}, {"properties", Ordered::object()}};
  Ordered required = Ordered::array();
  for (const Key& key : keys()) {
    if (key.section() != section.name) continue;
    object["properties"][key.name()] = key_schema(key);
    if (key.fallback.empty()) required.push_back(key.name());
  }
  if (!required.empty()) object["required"] = required;
  Ordered out = object;
  if (section.name == "tls") out = {{"anyOf", Ordered::array({object, Ordered{{"const", "off"}}})}};
  if (section.name == "shard_map") out = {{"anyOf", Ordered::array({object, Ordered{{"type", "null"}}})}};
  out["description"] = section.doc;
  return out;
}

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

void add_table(std::string& out, const std::string& section) {
  out += "| key | type | default | reload | meaning |\n|---|---|---|---|---|\n";
  for (const Key& key : keys()) {
    if (key.section() != section) continue;
    const std::string fallback = key.fallback.empty() ? "required" : "`" + key.fallback + "`";
    out += "| `" + key.path + "` | " + cell(type_name(key.rule)) + " | " + cell(fallback) + " | " +
           (key.reload == Reload::now ? "now" : "restart") + " | " + cell(key.doc) + " |\n";
  }
}

}  // namespace

std::string reference_markdown() {
  std::string out =
      "# Configuration reference\n\n"
      "Generated from `src/config/schema.cpp`. Do not edit it by hand: a test compares it with the code\n"
      "(`TANDEM_REGENERATE=1 test_config` writes it anew).\n\n"
      "The file is one JSON object. `//` and `/* */` comments are allowed; trailing commas and duplicate keys are "
      "not.\n"
      "Every key but `hostname` and `tls` has a default. `config/relay.jsonc` is an example to start from.\n"
      "`tandemd --config FILE --check` says what is wrong with a file, and what it would do.\n\n"
      "- A **duration** is a string: a number and `ms`, `s`, `m`, `h` or `d`. `\"500ms\"`, `\"1.5h\"`, `\"30d\"`.\n"
      "- A **size** is a string: a number and `B`, `KiB`, `MiB`, `GiB` or `TiB`. `\"256KiB\"`.\n"
      "- Counts, sizes and durations are above zero.\n"
      "- A **path** that is not absolute counts from the folder of the configuration file.\n"
      "- An **address** is a literal with a port: `127.0.0.1:443`, `[::1]:443`.\n"
      "- **reload**: `now` keys take effect at `systemctl reload tandemd` (`SIGHUP`) without dropping a socket. "
      "`restart` keys wait\n"
      "  for a restart; the reload says so and applies the rest. A file with a fault is refused whole.\n"
      "- `\"$schema\"` at the top is allowed and ignored: editors find `relay.schema.json` by it.\n\n"
      "Combinations that are refused: `tls` `\"off\"` with a listener that is not loopback; an admin listener that is "
      "not loopback;\n"
      "two listeners on one address; `shard_map.drain_delay` below twice `shard_map.poll_interval`; "
      "`shed.resume_below` not below\n"
      "`shed.memory_pressure`.\n\n"
      "## Who and where\n\n";
  add_table(out, "");
  for (const Section& section : sections()) {
    out += "\n## " + section.name + "\n\n" + section.doc + "\n\n";
    add_table(out, section.name);
  }
  return out;
}

std::string json_schema() {
  Ordered root = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                  {"title", "Tandem relay configuration"},
                  {"type", "object"},
                  {"additionalProperties", false},
                  {"required", {"hostname", "tls"}}};
  root["properties"]["$schema"] = {{"type", "string"}};
  for (const Key& key : keys()) {
    if (key.section().empty()) root["properties"][key.name()] = key_schema(key);
  }
  for (const Section& section : sections()) root["properties"][section.name] = section_schema(section);
  return root.dump(2) + "\n";
}

}  // namespace tandem::config
