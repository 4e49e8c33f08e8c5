// tandemctl map status: desired beside observed, each divergence named.
#include "tandem/app/map_command.hpp"
#include "tandem/app/map_observed.hpp"
#include "tandem/config/units.hpp"

#include <chrono>
#include <thread>

namespace tandem::app {

namespace {

std::string table(const FleetView& view) {
  std::string out = "desired: version " + std::to_string(view.desired.value) + ", published " +
                    std::to_string(static_cast<long>(view.age_seconds)) + " s ago\n";
  for (const HostView& h : view.hosts) {
    out += h.host + ": " + std::to_string(h.desired_buckets) + " buckets desired; ";
    if (!h.observed) {
      out += "no answer";
    } else {
      out += "version " + std::to_string(h.observed->version.value);
      if (h.observed->buckets) out += ", " + std::to_string(*h.observed->buckets) + " buckets";
      out += ", " + std::to_string(h.observed->rooms) + " rooms, " + std::to_string(h.observed->draining_rooms) +
             " draining";
    }
    out += h.divergences.empty() ? "; agrees\n" : "\n";
    for (const Divergence& d : h.divergences)
      out += "  " + d.code + (d.overdue ? " (too long)" : "") + ": " + d.message + "\n";
  }
  return out;
}

}  // namespace

int map_status(MapCommand& c, bool watch) {
  MapStore& store = c.need_store();
  if (c.options.admins.empty()) throw usage_error("--admin", "", "status needs at least one --admin HOST=URL");
  FleetObserver observer(c.options);
  while (true) {
    const FleetView view = observer.look(store);
    OrderedJson out = to_json(view);
    c.out.result(out, table(view));
    if (!watch) {
      if (!view.overdue) return kOk;
      if (!c.out.json())
        std::fprintf(stderr, "tandemctl: divergence: a host differs from the map for longer than convergence allows\n");
      return kWrong;
    }
    for (int i = 0; i < 20; ++i) {
      if (interrupted()) return view.overdue ? kWrong : kOk;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace tandem::app
