// tandemctl bench: loads a relay on this machine and prints what it did.
#include "tandem/app/bench.hpp"
#include "tandem/app/ctl.hpp"
#include "tandem/app/probe.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

struct BenchArguments {
  std::string url;
  std::vector<std::string> loads = {"parked", "throughput", "handshakes"};
  BenchOptions options;
  bool json = false;
};

class Bar {
 public:
  Bar(std::string name, bool shown) : name_(std::move(name)), shown_(shown) {}
  ~Bar() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;
  void draw(double done) const {
    constexpr int width = 40;
    if (!shown_) return;
    const int full = static_cast<int>(done * width);
    std::fprintf(stderr, "\r%-11s [%s%s] %3.0f %%", name_.c_str(),
                 std::string(static_cast<std::size_t>(full), '#').c_str(),
                 std::string(static_cast<std::size_t>(width - full), '.').c_str(), done * 100);
    std::fflush(stderr);
  }

 private:
  std::string name_;
  bool shown_;
};

BenchRow run_load(const std::string& load, const BenchOptions& options, bool bar_shown) {
  const Bar bar(load, bar_shown);
  const BenchProgress progress = [&bar](double done) { bar.draw(done); };
  if (load == "parked") return bench_parked(options, progress);
  if (load == "throughput") return bench_throughput(options, progress);
  if (load == "handshakes") return bench_handshakes(options, progress);
  if (load == "hostile") return bench_hostile(options, progress);
  if (load == "churn") return bench_churn(options, progress);
  return bench_soak(options, progress);
}

void print_row(const BenchRow& row, bool json) {
  if (json) {
    nlohmann::json line = {{"load", row.load}, {"ok", row.ok()}};
    for (const BenchFigure& figure : row.figures) line[figure.name] = std::round(figure.value * 1000) / 1000;
    if (!row.ok()) line["faults"] = row.faults;
    std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    return;
  }
  for (const BenchFigure& figure : row.figures) {
    std::string name = figure.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    const bool whole = figure.value == std::floor(figure.value);
    std::printf("%-11s  %-22s %12.*f\n", row.load.c_str(), name.c_str(), whole ? 0 : 2, figure.value);
  }
  for (const std::string& fault : row.faults) std::printf("%-11s  FAULT: %s\n", row.load.c_str(), fault.c_str());
  std::fflush(stdout);
}

// Each socket is a descriptor: as many as the system lets us have.
bool raise_descriptor_limit(int wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= static_cast<rlim_t>(wanted) + 50;
}

int bench(const BenchArguments& arguments) {
  BenchOptions options = arguments.options;
  options.host = host_of_origin(arguments.url);
  if (options.host.empty())
    return fail("bench: '" + arguments.url + "' is not an https: or wss: origin such as https://localhost:8443",
                kUsage);
  if (!is_loopback_host(options.host))
    return fail("bench: '" + arguments.url + "' is not on this machine; a bench loads loopback only", kUsage);
  const bool hostile = std::count(arguments.loads.begin(), arguments.loads.end(), "hostile") > 0;
  const int wanted = std::max(options.sockets, hostile ? options.attackers * 2 + options.rooms * 2 : 0);
  if (!raise_descriptor_limit(wanted))
    return fail("bench: " + std::to_string(wanted) + " sockets need a higher descriptor limit; see ulimit -n");
  for (const std::string& load : arguments.loads) {
    if (load == "churn" && options.admin.empty())
      return fail("bench: --load churn looks at the relay's memory and needs --admin ADDRESS", kUsage);
  }

  bool ok = true;
  for (const std::string& load : arguments.loads) {
    const BenchRow row = run_load(load, options, !arguments.json && ::isatty(2) == 1);
    print_row(row, arguments.json);
    ok = ok && row.ok();
  }
  return ok ? kOk : fail("bench " + arguments.url + ": something went wrong under load; the faults are listed above");
}

}  // namespace

void add_bench(Ctl& ctl) {
  auto arguments = std::make_shared<BenchArguments>();
  BenchOptions& options = arguments->options;
  CLI::App* command = ctl.app->add_subcommand("bench", "Load a relay on this machine and measure it");
  command->add_option("url", arguments->url, "The relay's origin on loopback, such as https://localhost:8443")
      ->type_name("URL")
      ->required();
  command
      ->add_option("--load", arguments->loads,
                   "parked, throughput, handshakes, hostile, churn, soak (repeatable); default: the first three")
      ->type_name("LOAD")
      ->expected(1)
      ->take_all()
      ->check(CLI::IsMember({"parked", "throughput", "handshakes", "hostile", "churn", "soak"}));
  command->add_option("--seconds", options.run_seconds, "How long each load runs; a soak may take hours")
      ->check(CLI::Range(0.1, 7 * 86400.0))
      ->capture_default_str();
  command->add_option("--sockets", options.sockets, "Parked sockets")
      ->check(CLI::Range(1, 200000))
      ->capture_default_str();
  command->add_option("--rooms", options.rooms, "Pairings of throughput, hostile and soak")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--attackers", options.attackers, "Hostile connections at a time")
      ->check(CLI::Range(1, 20000))
      ->capture_default_str();
  command->add_option("--connections", options.connections, "Connections of churn")
      ->check(CLI::Range(2000, 10000000))
      ->capture_default_str();
  command->add_option("--frame", options.frame_bytes, "Bytes of a message")
      ->check(CLI::Range(8, 256 * 1024))
      ->capture_default_str();
  command->add_option("--rate", options.messages_per_second, "Messages per second in a room; 0: as fast as it goes")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--concurrency", options.concurrency, "Handshakes at a time")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--admin", options.admin,
                   "The relay's admin listener: soak and churn then check that it is back at its baseline")
      ->type_name("ADDRESS");
  command
      ->add_option("--map", options.map,
                   "The map file that the relay polls: a soak moves rooms away and back by writing it")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print one JSON object a load");
  command->callback([&ctl, arguments] { ctl.run = [arguments] { return bench(*arguments); }; });
}

}  // namespace tandem::app
