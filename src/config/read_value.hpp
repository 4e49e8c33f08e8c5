// One JSON value to one typed value, by a rule: a fault says what was expected and what was found.
#pragma once

#include "tandem/config/schema.hpp"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

namespace tandem::config {

using Fault = std::optional<ValueFault>;
using nlohmann::json;

// What a reader may want to know beside the value.
struct Reading {
  const Rule& rule;
  const std::string& base_dir;
};

Fault read_value(const json& v, const Reading& r, std::string& out);
Fault read_value(const json& v, const Reading& r, bool& out);
Fault read_value(const json& v, const Reading& r, std::uint32_t& out);
Fault read_value(const json& v, const Reading& r, double& out);
Fault read_value(const json& v, const Reading& r, Duration& out);
Fault read_value(const json& v, const Reading& r, ByteCount& out);
Fault read_value(const json& v, const Reading& r, ListenAddress& out);
Fault read_value(const json& v, const Reading& r, std::vector<ListenAddress>& out);
Fault read_value(const json& v, const Reading& r, std::vector<Cidr>& out);
Fault read_value(const json& v, const Reading& r, EgressBudget& out);
Fault read_choice(const json& v, const Reading& r, std::size_t& index);

template <class T>
  requires std::is_enum_v<T>
Fault read_value(const json& v, const Reading& r, T& out) {
  std::size_t index = 0;
  if (Fault fault = read_choice(v, r, index)) return fault;
  out = static_cast<T>(index);
  return std::nullopt;
}

template <class T>
Fault read_value(const json& v, const Reading& r, std::optional<T>& out) {
  if (v.is_null() && r.rule.nullable) {
    out.reset();
    return std::nullopt;
  }
  T value{};
  if (Fault fault = read_value(v, r, value)) return fault;
  out = std::move(value);
  return std::nullopt;
}

json show_value(const std::string& v, const Rule& rule);
json show_value(bool v, const Rule& rule);
json show_value(std::uint32_t v, const Rule& rule);
json show_value(double v, const Rule& rule);
json show_value(Duration v, const Rule& rule);
json show_value(ByteCount v, const Rule& rule);
json show_value(const ListenAddress& v, const Rule& rule);
json show_value(const std::vector<ListenAddress>& v, const Rule& rule);
json show_value(const std::vector<Cidr>& v, const Rule& rule);
json show_value(const EgressBudget& v, const Rule& rule);

template <class T>
  requires std::is_enum_v<T>
json show_value(T v, const Rule& rule) {
  return rule.choices.at(static_cast<std::size_t>(v));
}

template <class T>
json show_value(const std::optional<T>& v, const Rule& rule) {
  return v ? show_value(*v, rule) : json(nullptr);
}

}  // namespace tandem::config
