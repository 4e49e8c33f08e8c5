// How a `tandemctl map` command fails: one line for people, one object for programs, one exit code (2b-map-tool,
// "JSON"). Thrown by the parts of the publishing tool and caught in one place, where the command was started.
#pragma once

#include "tandem/app/ctl.hpp"
#include "tandem/shard/map.hpp"
#include "tandem/shard/map_edit.hpp"

#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace tandem::app {

// Keys keep the order in which they were set: what is pinned is also pleasant to read.
using OrderedJson = nlohmann::ordered_json;

class MapError : public std::runtime_error {
 public:
  // code: one of the error codes of 2b; message: one line that names the argument or field and its value; extra:
  // further members of the error object.
  MapError(std::string code, const std::string& message, OrderedJson extra = OrderedJson::object(),
           int exit_code = kWrong)
      : std::runtime_error(message), code_(std::move(code)), extra_(std::move(extra)), exit_code_(exit_code) {}

  [[nodiscard]] const std::string& code() const noexcept { return code_; }
  [[nodiscard]] const OrderedJson& extra() const noexcept { return extra_; }
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }
  [[nodiscard]] OrderedJson object() const;  // {"ok":false,"error":...,"message":...,...}
  void add(const std::string& key, OrderedJson value) { extra_[key] = std::move(value); }

 private:
  std::string code_;
  OrderedJson extra_;
  int exit_code_;
};

[[nodiscard]] MapError usage_error(const std::string& argument, const std::string& value, const std::string& says);
[[nodiscard]] MapError store_error(const std::string& what, const std::string& path, int errno_value);
// source: the file or URL the map came from.
[[nodiscard]] MapError invalid_map(const std::string& source, const shard::MapFault& fault);
[[nodiscard]] MapError refused_edit(const shard::EditFault& fault);

}  // namespace tandem::app
