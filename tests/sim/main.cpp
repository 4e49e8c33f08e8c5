// tandem_sim [--seeds N] [--first S] [--seed S] [--events M] [--plant NAME|all] [--trace]
// Runs seeds S, S+1, ... and stops at the first that breaks an invariant, which `--seed S` replays. With --plant a bug
// is planted, and the exit code is 0 only if it is found.
#include "sim/sim.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace tandem;

struct Options {
  std::uint64_t first = 1, seeds = 100, events = 1000;
  std::string plant;
  bool trace = false;
};

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: tandem_sim [--seeds N] [--first S] [--seed S] [--events M] [--plant NAME|all] [--trace]\n");
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--trace") {
      o.trace = true;
      continue;
    }
    if (i + 1 >= argc) usage();
    const char* value = argv[++i];
    if (name == "--plant") {
      o.plant = value;
      continue;
    }
    char* end = nullptr;
    const std::uint64_t n = std::strtoull(value, &end, 10);
    if (*end != '\0') usage();
    if (name == "--seeds") {
      o.seeds = n;
    } else if (name == "--first") {
      o.first = n;
    } else if (name == "--seed") {
      o.first = n;
      o.seeds = 1;
    } else if (name == "--events") {
      o.events = n;
    } else {
      usage();
    }
  }
  return o;
}

// True where some seed finds the planted bug.
bool found(sim::Plant plant, const Options& o) {
  for (std::uint64_t seed = o.first; seed < o.first + o.seeds; ++seed) {
    const sim::Report r = sim::run(seed, o.events, plant);
    if (r.broken.empty()) continue;
    std::printf("%-16s found by seed %lu after %lu events: %s\n", std::string(sim::name(plant)).c_str(), seed, r.events,
                r.broken.c_str());
    return true;
  }
  std::printf("%-16s NOT FOUND by %lu seeds\n", std::string(sim::name(plant)).c_str(), o.seeds);
  return false;
}

int plants(const Options& o) {
  bool all = true, any = false;
  for (int i = 1; i < sim::kPlantCount; ++i) {
    const auto plant = static_cast<sim::Plant>(i);
    if (o.plant != "all" && o.plant != sim::name(plant)) continue;
    any = true;
    all = found(plant, o) && all;
  }
  if (!any) usage();
  return all ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  if (!o.plant.empty()) return plants(o);
  sim::Report sum;
  for (std::uint64_t seed = o.first; seed < o.first + o.seeds; ++seed) {
    const sim::Report r = sim::run(seed, o.events, sim::Plant::none, o.trace);
    if (!r.broken.empty()) {
      std::printf("seed %lu broke after %lu events, %.3f s of virtual time: %s\n", seed, r.events,
                  to_seconds(r.virtual_time), r.broken.c_str());
      std::printf("replay: tandem_sim --seed %lu --events %lu --trace\n", seed, o.events);
      return 1;
    }
    sum.events += r.events;
    sum.virtual_time += r.virtual_time;
    sum.admissions += r.admissions;
    sum.frames += r.frames;
    sum.evictions += r.evictions;
    sum.kills += r.kills;
    sum.maps += r.maps;
    sum.registrations += r.registrations;
  }
  std::printf(
      "%lu seeds, %lu events, %.1f h of virtual time: %lu admissions, %lu frames, %lu registrations, %lu maps, %lu "
      "evictions, %lu kills; no invariant broken\n",
      o.seeds, sum.events, to_seconds(sum.virtual_time) / 3600, sum.admissions, sum.frames, sum.registrations, sum.maps,
      sum.evictions, sum.kills);
  return 0;
}
