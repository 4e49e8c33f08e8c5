// The machine around the relay: clock, descriptors, kernel, state file, and whether the relay itself runs.
#include "tandem/app/admin_read.hpp"
#include "tandem/app/checker.hpp"
#include "tandem/app/doctor.hpp"
#include "tandem/config/units.hpp"
#include "tandem/state/store.hpp"

#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <sys/timex.h>

#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

std::optional<std::uint64_t> first_number(const std::string& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

}  // namespace

Findings examine_clock(WallTime now, std::optional<WallTime> server_time) {
  constexpr seconds kTolerated(30);
  if (server_time) {
    const seconds skew = now - *server_time;
    if (skew > kTolerated || skew < -kTolerated) {
      return {{Health::wrong, "clock",
               "is " + config::describe_duration(skew < seconds(0) ? -skew : skew) +
                   (skew > seconds(0) ? " ahead of" : " behind") + " the map's server",
               "synchronise it: timedatectl set-ntp true"}};
    }
  }
  timex state{};
  const int status = ::adjtimex(&state);  // modes 0: reads only
  if (status == TIME_ERROR && !server_time) {
    return {{Health::warning, "clock", "the kernel does not know whether it is right",
             "synchronise it: timedatectl set-ntp true"}};
  }
  return {{Health::good, "clock", server_time ? "agrees with the map's server" : "synchronised", ""}};
}

Findings examine_state(const config::Config& c) {
  if (!c.state_path) {
    return {{Health::warning, "state", "memory only: every restart costs each pairing a silent re-registration",
             "name a file in state.path"}};
  }
  if (const auto fault = state::Store::inspect(*c.state_path)) {
    return {{Health::wrong, "state", fault->message,
             "create the folder, writable by the service, or correct state.path; run this as root or as the service's "
             "user"}};
  }
  return {{Health::good, "state", *c.state_path, ""}};
}

Findings examine_relay(const config::Config& c) {
  const auto got = admin_get(c.admin_listen.text(), "/readyz");
  if (const auto* fault = std::get_if<AdminFault>(&got)) {
    return {{Health::warning, "relay", "not running, or not with this configuration: " + fault->message,
             "systemctl start tandemd"}};
  }
  const auto& answer = std::get<AdminAnswer>(got);
  if (answer.status != 200) {
    std::string why = answer.body.substr(0, 200);
    while (why.ends_with('\n')) why.pop_back();
    return {{Health::wrong, "relay", "runs, but is not ready: " + why, "journalctl -u tandemd tells more"}};
  }
  const auto status = admin_json(c.admin_listen.text(), "/status");
  const auto* object = std::get_if<nlohmann::json>(&status);
  if (object != nullptr && object->value("hostname", c.hostname) != c.hostname) {
    return {{Health::wrong, "relay",
             "the one that runs calls itself " + object->value("hostname", std::string()) + ", this configuration " +
                 c.hostname,
             "restart it to take the new hostname, or correct the file"}};
  }
  if (object != nullptr && object->contains("last_fetch_error") && (*object)["last_fetch_error"].is_object()) {
    const auto& error = (*object)["last_fetch_error"];
    return {{Health::wrong, "relay",
             "cannot fetch its map: " + error.value("cause", std::string("unknown")) + ", for " +
                 std::to_string(error.value("polls", 0)) + " polls",
             "make the map's server answer; the last map stays in force"}};
  }
  return {{Health::good, "relay", "runs and is ready", ""}};
}

Findings examine_descriptors(const config::Config& c, std::optional<std::uint64_t> limit_of_relay) {
  rlimit here{};
  ::getrlimit(RLIMIT_NOFILE, &here);
  CheckFacts facts;
  facts.descriptor_limit = limit_of_relay.value_or(here.rlim_max);
  const std::string whose = limit_of_relay ? "of the running relay" : "of this shell";
  for (const std::string& warning : config_warnings(c, facts)) {
    if (warning.starts_with("limits.sockets:")) {
      return {{Health::warning, "descriptors",
               "limit " + whose + ": " + std::to_string(facts.descriptor_limit) +
                   ", limits.sockets: " + std::to_string(c.limits.sockets.value_or(0)),
               "LimitNOFILE=1048576 in the unit (the packaged one has it), or lower limits.sockets"}};
    }
  }
  return {{Health::good, "descriptors", "limit " + whose + ": " + std::to_string(facts.descriptor_limit), ""}};
}

Findings examine_kernel(const config::Config& c, const std::string& proc) {
  struct Setting {
    const char* name;
    std::uint64_t least;
    const char* why;
  };
  const Setting settings[] = {
      {"net.core.somaxconn", 4096, "a burst of reconnects is refused"},
      {"net.ipv4.tcp_max_syn_backlog", 2048, "a burst of reconnects is dropped"},
      {"net.core.rmem_max", c.limits.socket_buffer.value / 2, "limits.socket_buffer is cut"},
      {"fs.nr_open", std::uint64_t{c.limits.sockets.value_or(0)} + 64,
       "no process may open as many files as limits.sockets needs"},
      {"net.netfilter.nf_conntrack_max", std::uint64_t{c.limits.sockets.value_or(0)} * 5 / 4,
       "the firewall forgets connections before limits.sockets is reached"},
  };
  Findings out;
  for (const Setting& setting : settings) {
    std::string path = setting.name;
    for (char& ch : path) ch = ch == '.' ? '/' : ch;
    const auto value = first_number(proc + "/sys/" + path);
    if (!value || *value >= setting.least) continue;  // absent: not this kernel's, or not this container's to see
    out.push_back({Health::warning, "kernel",
                   std::string(setting.name) + " is " + std::to_string(*value) + ": " + setting.why,
                   "sysctl -w " + std::string(setting.name) + "=" + std::to_string(setting.least) +
                       ", and the same line in /etc/sysctl.d/"});
  }
  if (out.empty()) out.push_back({Health::good, "kernel", "backlogs, buffers and file limits are wide enough", ""});
  return out;
}

}  // namespace tandem::app
