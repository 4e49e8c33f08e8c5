// The one definition of every configuration key (3-operations 3.2): its path, type, bounds, default, what it means, and
// whether a reload applies it. Parsing, "did you mean", docs/configuration.md, config/relay.schema.json, the reload
// plan and what `tandemd --check` prints all come from this table, so that none can drift from another.
#pragma once

#include "tandem/config/config.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace tandem::config {

enum class Type : std::uint8_t {
  text,
  path,
  url,
  authority,
  flag,
  count,
  rate,
  percent,
  duration,
  size,
  choice,
  address,
  addresses,
  networks,
  egress,
};

enum class Reload : std::uint8_t { now, restart };

struct Rule {
  Type type = Type::text;
  bool nullable = false;
  bool zero_allowed = false;             // durations only
  ByteCount least{1}, most{1ull << 60};  // sizes only
  std::vector<std::string> choices{};    // the valid words, in the order of the enumeration
};

struct ValueFault {
  std::string suffix;  // "[1]" or ".limit" where a part of the value is wrong
  std::string message;
};

struct Key {
  std::string path;  // "limits.rooms"
  Rule rule;
  std::string fallback;  // the default as JSON text; empty: required wherever its section stands
  Reload reload = Reload::now;
  std::string doc;  // sentences for docs and schema
  std::function<std::optional<ValueFault>(Config&, const nlohmann::json&, const std::string& base_dir)> read;
  std::function<std::string(const Config&)> show;  // as JSON text, canonical: equal values show equally
  std::function<void(Config& to, const Config& from)> copy;

  [[nodiscard]] std::string section() const {
    return path.substr(0, path.find('.') == std::string::npos ? 0 : path.find('.'));
  }
  [[nodiscard]] std::string name() const {
    return path.substr(path.find('.') == std::string::npos ? 0 : path.find('.') + 1);
  }
};

inline constexpr double kMinRate = 1e-6, kMaxRate = 1e6;  // per second

struct Section {
  std::string name;  // "limits"
  std::string doc;
  bool required = false;
};

[[nodiscard]] const std::vector<Key>& keys();  // in the order of the documentation
[[nodiscard]] const std::vector<Section>& sections();
// Whether the section of `key` is there: tls may be "off" and shard_map absent.
[[nodiscard]] bool present(const Config& config, const Key& key);

// What a value of this rule looks like, for people: "a duration in a string, such as \"30s\"".
[[nodiscard]] std::string expectation(const Rule& rule);

// The generated files. A unit test compares them with those in the tree.
[[nodiscard]] std::string reference_markdown();  // docs/configuration.md
[[nodiscard]] std::string json_schema();         // config/relay.schema.json

}  // namespace tandem::config
