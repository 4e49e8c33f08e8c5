#include "app/fleet_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

struct Peak {
  int most = 0;
  double mean = 0;  // over the seconds in which there were any
};

Peak peak_of(const std::map<std::int64_t, int>& by_second) {
  Peak peak;
  for (const auto& [second, count] : by_second) {
    peak.most = std::max(peak.most, count);
    peak.mean += count;
  }
  if (!by_second.empty()) peak.mean /= static_cast<double>(by_second.size());
  return peak;
}

// In any second of one host: as its log has it, and as the clients saw it.
std::size_t most_evictions(const FleetFindings& findings) {
  std::size_t most = 0;
  for (const auto& [host, by_room] : findings.evictions) {
    std::vector<std::chrono::nanoseconds> times;
    for (const auto& [room, time] : by_room) times.emplace_back(time);
    most = std::max(most, most_in_a_second(std::move(times)));
  }
  return most;
}
std::size_t most_evictions_seen(const FleetRecord& record) {
  std::size_t most = 0;
  for (const auto& [host, given] : record.evictions) {
    std::vector<std::chrono::nanoseconds> times;
    for (const TimePoint t : given) times.emplace_back(t.time_since_epoch());
    most = std::max(most, most_in_a_second(std::move(times)));
  }
  return most;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }
double rounded(Duration d) { return rounded(to_seconds(d)); }

nlohmann::json spread(const std::vector<Duration>& values) {
  return {{"count", values.size()},
          {"p50_seconds", rounded(percentile(values, 0.5))},
          {"p99_seconds", rounded(percentile(values, 0.99))},
          {"worst_seconds", rounded(percentile(values, 1))}};
}

void print_json(const FleetPhase& phase) {
  const FleetRecord& record = phase.record;
  nlohmann::json line = {{"phase", phase.title},
                         {"seconds", rounded(phase.took)},
                         {"pairings", phase.pairings},
                         {"back", phase.back},
                         {"recovery", spread(record.recoveries)},
                         {"splits", spread(record.splits)},
                         {"eviction_gap", spread(record.eviction_gaps)},
                         {"evictions_most_in_a_second", most_evictions(phase.findings)},
                         {"evictions_most_seen_in_a_second", most_evictions_seen(record)},
                         {"delivered", record.delivered},
                         {"lost", record.lost},
                         {"admissions_judged", phase.findings.admissions},
                         {"faults", phase.findings.faults},
                         {"endings", record.endings},
                         {"drains", nlohmann::json::array()},
                         {"connections", nlohmann::json::object()}};
  for (const FleetDrain& drain : phase.drains)
    line["drains"].push_back({{"host", drain.host},
                              {"rooms", drain.rooms},
                              {"predicted_seconds", rounded(drain.predicted)},
                              {"seconds", rounded(drain.took)}});
  for (const auto& [host, by_second] : record.attempts) {
    const Peak peak = peak_of(by_second);
    line["connections"][host] = {{"most_in_a_second", peak.most}, {"mean_in_a_second", rounded(peak.mean)}};
  }
  if (!phase.trouble.empty()) line["trouble"] = phase.trouble;
  std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

void print_spread(const char* name, const std::vector<Duration>& values) {
  std::printf("  %-18s %4zu   p50 %s   p99 %s   worst %s\n", name, values.size(),
              in_seconds(percentile(values, 0.5)).c_str(), in_seconds(percentile(values, 0.99)).c_str(),
              in_seconds(percentile(values, 1)).c_str());
}

}  // namespace

std::string in_seconds(Duration d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", to_seconds(d));
  return text;
}

Duration percentile(std::vector<Duration> values, double fraction) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[std::min(values.size() - 1, rank == 0 ? 0 : rank - 1)];
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last = "(no log)";
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

void print_phase(const FleetPhase& phase, bool json) {
  if (json) return print_json(phase);
  const FleetRecord& record = phase.record;
  std::printf("\n%s: %zu of %zu pairings back after %s\n", phase.title.c_str(), phase.back, phase.pairings,
              in_seconds(phase.took).c_str());
  if (!phase.trouble.empty()) std::printf("  NOT CONVERGED: %s\n", phase.trouble.c_str());
  for (const FleetDrain& drain : phase.drains) {
    const double off = 100 * (to_seconds(drain.took) / to_seconds(drain.predicted) - 1);
    std::printf("  drain %-16s %4zu rooms in %s from its adoption, %s predicted (%+.1f %%)\n", drain.host.c_str(),
                drain.rooms, in_seconds(drain.took).c_str(), in_seconds(drain.predicted).c_str(), off);
  }
  print_spread("recovery", record.recoveries);
  print_spread("splits", record.splits);
  if (!record.eviction_gaps.empty()) {
    print_spread("gap of two sockets", record.eviction_gaps);
    std::printf("  evictions          at most %zu in any second of one host by its log, %zu as the clients saw them\n",
                most_evictions(phase.findings), most_evictions_seen(record));
  }
  for (const auto& [host, by_second] : record.attempts) {
    const Peak peak = peak_of(by_second);
    std::printf("  handshakes %-16s at most %d/s, mean %.1f/s\n", host.c_str(), peak.most, peak.mean);
  }
  for (const auto& [ending, count] : record.endings)
    std::printf("  ended              %4d   %s\n", count, ending.c_str());
  std::printf("  frames             %llu delivered, %llu lost\n", static_cast<unsigned long long>(record.delivered),
              static_cast<unsigned long long>(record.lost));
  std::printf("  admissions         %llu judged by the map of their host, %zu faults\n",
              static_cast<unsigned long long>(phase.findings.admissions), phase.findings.faults.size());
  for (const std::string& fault : phase.findings.faults) std::printf("  FAULT: %s\n", fault.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace tandem::app
