// tandemctl status: what a running relay says of itself, once or as a live view.
#include "tandem/app/admin_read.hpp"
#include "tandem/app/ctl.hpp"
#include "tandem/config/units.hpp"

#include <cmath>
#include <csignal>
#include <ctime>
#include <iostream>
#include <memory>
#include <sstream>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

using nlohmann::json;

struct StatusOptions {
  AdminPlace place;
  bool json = false, watch = false;
  std::string interval = "1s";
};

volatile std::sig_atomic_t watch_ended = 0;

Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::max(0.0, s)));
}

// Fields are read leniently: a relay of another version may lack one.
double number(const json& o, const char* pointer) {
  const json::json_pointer at(pointer);
  return o.contains(at) && o.at(at).is_number() ? o.at(at).get<double>() : 0;
}
std::string whole(const json& o, const char* pointer) {
  return std::to_string(static_cast<std::int64_t>(number(o, pointer)));
}
std::string field_text(const json& o, const char* key) {
  return o.contains(key) && o[key].is_string() ? o[key].get<std::string>() : "";
}
std::string ago(const json& o, const char* pointer) {
  return config::describe_duration(from_seconds(number(o, pointer)));
}

std::string owned(const json& s) {
  const auto buckets = static_cast<std::int64_t>(number(s, "/owned/buckets"));
  std::string out = std::to_string(buckets) + " of 65536 buckets";
  if (buckets == 65536) return out + " (all)";
  if (buckets == 0) return out + " (owns nothing)";
  std::size_t shown = 0;
  for (const json& range : s.value("/owned/ranges"_json_pointer, json::array())) {
    if (++shown > 8) return out + ", ...";
    if (range.is_array() && range.size() == 2)
      out += (shown == 1 ? ": " : ", ") + range[0].dump() + "-" + range[1].dump();
  }
  return out;
}

std::string draining(const json& s) {
  if (number(s, "/draining/rooms") == 0) return "no";
  return whole(s, "/draining/rooms") + " rooms of " + whole(s, "/draining/buckets") + " buckets left, about " +
         ago(s, "/draining/expected_end_seconds") + " to go";
}

std::string failing_fetch(const json& s) {
  const json& e = s.contains("last_fetch_error") ? s["last_fetch_error"] : json();
  if (!e.is_object()) return "";
  std::string out = field_text(e, "cause");
  for (const char* key : {"kind", "value", "detail"}) {
    if (const std::string part = field_text(e, key); !part.empty()) out += ", " + part;
  }
  return out + "; " + whole(e, "/polls") + " polls, for " + ago(e, "/seconds");
}

std::string describe_status(const json& s) {
  std::ostringstream out;
  const auto line = [&](const std::string& what, const std::string& how) {
    if (!how.empty()) out << what << std::string(what.size() < 13 ? 13 - what.size() : 1, ' ') << how << "\n";
  };
  const bool resolved = field_text(s, "mode") == "resolved";
  line("relay",
       field_text(s, "hostname") + ", version " + field_text(s, "version") + ", up " + ago(s, "/uptime_seconds"));
  const std::string not_ready = field_text(s, "not_ready");
  line("ready", s.value("stopping", false) ? "no: stopping" : not_ready.empty() ? "yes" : "no: " + not_ready);
  line("mode", resolved ? "resolved" : "direct");
  if (resolved)
    line("map", "version " + whole(s, "/map/version") + " (floor " + whole(s, "/map/floor") + "), " +
                    ago(s, "/map/age_seconds") + " old");
  line("owned", owned(s));
  line("rooms", whole(s, "/rooms/spliced") + " spliced, " + whole(s, "/rooms/mac_only") + " with a mac only, " +
                    whole(s, "/rooms/phone_only") + " with a phone only, " + whole(s, "/rooms/pending") + " pending");
  line("sockets", whole(s, "/sockets/admitted") + " admitted, " + whole(s, "/sockets/pending") + " pending, " +
                      whole(s, "/sockets/handshake") + " in handshake");
  line("throughput", config::describe_size(number(s, "/throughput/bytes_per_second")) + "/s");
  line("this month", config::describe_size(number(s, "/egress_bytes_month")) + " sent");
  if (resolved) line("draining", draining(s));
  if (s.value("shedding", false)) line("shedding", "yes: memory is short, new rooms are refused");
  if (s.contains("/certificate/expires_in_seconds"_json_pointer)) {
    const double left = number(s, "/certificate/expires_in_seconds");
    line("certificate", left > 0 ? "valid for " + config::describe_duration(from_seconds(left)) : "EXPIRED");
  }
  line("map fetch", failing_fetch(s).empty() ? "" : "failing: " + failing_fetch(s));
  return out.str();
}

// Empty, or what was wrong.
std::string show(const std::string& address, bool as_json, bool redraw) {
  const auto got = admin_json(address, "/status");
  if (const auto* fault = std::get_if<AdminFault>(&got)) return fault->message;
  const json& status = std::get<json>(got);
  if (as_json) {
    std::cout << status.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  } else {
    std::cout << (redraw ? "\033[H\033[2J" : "") << describe_status(status) << std::flush;
  }
  return {};
}

void sleep_until_next(Duration interval) {
  timespec left{};
  left.tv_sec = static_cast<time_t>(std::chrono::duration_cast<seconds>(interval).count());
  left.tv_nsec = static_cast<long>((interval % seconds(1)).count());
  ::nanosleep(&left, nullptr);  // a signal ends it early
}

int watch(const std::string& address, const StatusOptions& options, Duration interval) {
  struct sigaction stop{};
  stop.sa_handler = [](int) { watch_ended = 1; };
  ::sigaction(SIGINT, &stop, nullptr);
  ::sigaction(SIGTERM, &stop, nullptr);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && !options.json;
  bool reachable = false;
  while (watch_ended == 0 && std::cout) {
    const std::string fault = show(address, options.json, terminal);
    if (watch_ended != 0) break;
    if (!fault.empty() && !reachable && !terminal) return fail("status: " + fault);
    if (!fault.empty() && terminal) std::cout << "\033[H\033[2J" << fault << std::endl;
    if (!fault.empty() && !terminal) std::cerr << "tandemctl: status: " << fault << std::endl;
    if (fault.empty()) reachable = true;
    if (fault.empty() && !terminal && !options.json) std::cout << std::endl;
    sleep_until_next(interval);
  }
  return kOk;
}

int status(const StatusOptions& options) {
  const auto interval = config::parse_duration(options.interval);
  if (!interval || interval->count() == 0)
    return fail("status: --interval: " + options.interval + ": expected a duration such as 1s", kUsage);
  const auto address = admin_address(options.place);
  if (const auto* fault = std::get_if<AdminFault>(&address)) return fail("status: " + fault->message);
  if (options.watch) return watch(std::get<std::string>(address), options, *interval);
  const std::string fault = show(std::get<std::string>(address), options.json, false);
  return fault.empty() ? kOk : fail("status: " + fault);
}

}  // namespace

void add_status(Ctl& ctl) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = ctl.app->add_subcommand("status", "Show what a running relay is doing");
  add_place_options(*command, options->place);
  command->add_flag("--watch", options->watch, "Follow it until watch_ended");
  command->add_option("--interval", options->interval, "How often to look with --watch")
      ->type_name("DURATION")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the relay's /status on one line");
  command->callback([&ctl, options] { ctl.run = [options] { return status(*options); }; });
}

}  // namespace tandem::app
