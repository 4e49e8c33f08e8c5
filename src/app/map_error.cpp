#include "tandem/app/map_error.hpp"

#include <system_error>

namespace tandem::app {

OrderedJson MapError::object() const {
  OrderedJson out{{"ok", false}, {"error", code_}, {"message", what()}};
  for (const auto& [key, value] : extra_.items()) out[key] = value;
  return out;
}

MapError usage_error(const std::string& argument, const std::string& value, const std::string& says) {
  return {"usage", argument + ": " + (value.empty() ? "" : value + " ") + says, {{"value", value}}, kUsage};
}

MapError store_error(const std::string& what, const std::string& path, int errno_value) {
  return {"store_failed", what + " " + path + ": " + std::generic_category().message(errno_value), {{"value", path}}};
}

MapError invalid_map(const std::string& source, const shard::MapFault& fault) {
  return {"invalid_map",
          source + ": " + fault.message,
          {{"kind", std::string(label(fault.kind))}, {"where", fault.where}, {"value", fault.value}}};
}

MapError refused_edit(const shard::EditFault& fault) {
  using shard::EditError;
  const bool usage =
      fault.error == EditError::not_a_boundary || (fault.error == EditError::invalid_host && fault.argument == "HOST");
  OrderedJson extra{{"value", fault.value}};
  if (fault.error == EditError::unknown_host)
    extra["nearest"] = fault.nearest.empty() ? OrderedJson(nullptr) : OrderedJson(fault.nearest);
  return {std::string(label(fault.error)), fault.argument + ": " + fault.value + " " + fault.message, extra,
          usage ? kUsage : kWrong};
}

}  // namespace tandem::app
