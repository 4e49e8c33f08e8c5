#include "config/checks.hpp"

#include "tandem/config/units.hpp"

#include <cstdio>

namespace tandem::config {
namespace {

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

// Whether the kernel would refuse the second of two binds: equal, or one of them a wildcard of the same family.
bool collide(const ListenAddress& a, const ListenAddress& b) {
  return a.port == b.port && a.ip.v6 == b.ip.v6 && (a.ip == b.ip || a.ip.is_any() || b.ip.is_any());
}

void check_listeners(const Config& c, std::vector<Conflict>& out) {
  for (std::size_t i = 0; i < c.listen.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (collide(c.listen[i], c.listen[j])) {
        out.push_back({"listen[" + std::to_string(i) + "]", c.listen[i].text() + " is already taken by " +
                                                                c.listen[j].text() +
                                                                " in the same list; remove one of them"});
      }
    }
    if (!c.tls && !c.listen[i].ip.is_loopback()) {
      out.push_back({"tls", "\"off\" is for loopback listeners, but listen has " + c.listen[i].text() +
                                "; listen on 127.0.0.1 behind a proxy on this box, or name a certificate"});
    }
    if (collide(c.listen[i], c.admin_listen)) {
      out.push_back({"admin.listen", c.admin_listen.text() + " is already taken by " + c.listen[i].text() +
                                         " in listen; choose another port"});
    }
  }
  if (!c.admin_listen.ip.is_loopback()) {
    out.push_back({"admin.listen", "must be loopback, found " + c.admin_listen.text() +
                                       "; write \"127.0.0.1:" + std::to_string(c.admin_listen.port) +
                                       "\" and reach it through ssh or a proxy of yours"});
  }
}

}  // namespace

std::vector<Conflict> conflicts(const Config& c) {
  std::vector<Conflict> out;
  check_listeners(c, out);
  if (c.shard_map && c.shard_map->drain_delay < 2 * c.shard_map->poll_interval) {
    out.push_back({"shard_map.drain_delay", format_duration(c.shard_map->drain_delay) +
                                                " is less than twice poll_interval (" +
                                                format_duration(c.shard_map->poll_interval) + "); set it to at least " +
                                                format_duration(2 * c.shard_map->poll_interval) +
                                                ", so that a new owner knows of its rooms before they come"});
  }
  if (c.shed.resume_below >= c.shed.memory_pressure) {
    out.push_back({"shed.resume_below", "must be lower than memory_pressure (" + number(c.shed.memory_pressure) +
                                            "), found " + number(c.shed.resume_below)});
  }
  return out;
}

}  // namespace tandem::config
