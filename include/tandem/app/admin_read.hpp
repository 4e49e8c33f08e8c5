// How tandemctl asks a running relay: where its admin listener is, and what it answers. Loopback only, like the
// listener.
#pragma once

#include "tandem/core/json.hpp"

#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace CLI {
class App;
}

namespace tandem::app {

// Where the operator says the relay is: by its configuration file, or by the listener's address.
struct AdminPlace {
  std::string config_file;  // --config
  std::string admin;        // --admin: "127.0.0.1:9464" or "http://127.0.0.1:9464"
};

// Adds --config and --admin to a command; parsing then asks for exactly one of them.
void add_place_options(CLI::App& command, AdminPlace& place);

struct AdminFault {
  std::string message;  // one line: what, where, what to do
};

// "127.0.0.1:9464" of a place; the configuration is read where that names it.
[[nodiscard]] std::variant<std::string, AdminFault> admin_address(const AdminPlace& place);

// The body of http://ADDRESS/TARGET. Statuses beside 200 are faults but for those whose body is an answer (503 of
// /readyz).
struct AdminAnswer {
  int status = 0;
  std::string body;
};
[[nodiscard]] std::variant<AdminAnswer, AdminFault> admin_get(const std::string& address, const std::string& target);
[[nodiscard]] std::variant<nlohmann::json, AdminFault> admin_json(const std::string& address,
                                                                  const std::string& target);

}  // namespace tandem::app
