#include "tandem/app/admin_read.hpp"

#include "tandem/config/load.hpp"
#include "tandem/net/http_fetch.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {

void add_place_options(CLI::App& command, AdminPlace& place) {
  CLI::Option_group* where = command.add_option_group("relay", "Which relay to ask; one of the two");
  where->add_option("--config", place.config_file, "The relay's configuration file")->type_name("FILE");
  where->add_option("--admin", place.admin, "The relay's admin listener, such as 127.0.0.1:9464")->type_name("ADDRESS");
  where->require_option(1);
}

std::variant<std::string, AdminFault> admin_address(const AdminPlace& place) {
  if (place.config_file.empty()) {
    std::string text = place.admin;
    if (text.starts_with("http://")) text = text.substr(7);
    while (text.ends_with('/')) text.pop_back();
    const auto address = config::ListenAddress::parse(text);
    if (!address || !address->ip.is_loopback()) {
      return AdminFault{"--admin: " + place.admin + ": expected a loopback address and port, such as 127.0.0.1:9464"};
    }
    return address->text();
  }
  const auto loaded = config::load(place.config_file);
  if (const auto* error = std::get_if<config::ConfigError>(&loaded)) return AdminFault{error->one_line()};
  return std::get<config::Config>(loaded).admin_listen.text();
}

std::variant<AdminAnswer, AdminFault> admin_get(const std::string& address, const std::string& target) {
  net::FetchRequest request;
  request.url = "http://" + address + target;
  request.timeout = seconds(5);
  request.max_body_bytes = 8 * 1024 * 1024;
  request.any_status = true;
  net::FetchResult result = net::fetch_blocking(request);
  if (const auto* failure = std::get_if<net::FetchFailure>(&result)) {
    const bool refused = failure->cause == net::FetchCause::connect;
    return AdminFault{"admin listener " + address + ": " + failure->detail +
                      (refused ? "; is the relay running? (systemctl status tandemd)" : "")};
  }
  auto& answer = std::get<net::FetchAnswer>(result);
  return AdminAnswer{answer.status, std::move(answer.body)};
}

std::variant<nlohmann::json, AdminFault> admin_json(const std::string& address, const std::string& target) {
  auto got = admin_get(address, target);
  if (auto* fault = std::get_if<AdminFault>(&got)) return std::move(*fault);
  const auto& answer = std::get<AdminAnswer>(got);
  const std::string path = target.substr(0, target.find('?'));
  if (answer.status != 200) {
    return AdminFault{"admin listener " + address + ": " + path + " answered " + std::to_string(answer.status) + ": " +
                      answer.body.substr(0, 200)};
  }
  auto parsed = parse_json(answer.body, {.max_bytes = 8 * 1024 * 1024, .max_depth = 16});
  if (!parsed || !parsed->is_object()) {
    return AdminFault{"admin listener " + address + ": " + path + " answered no JSON object; is it a Tandem relay?"};
  }
  return std::move(*parsed);
}

}  // namespace tandem::app
