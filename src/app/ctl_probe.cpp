// tandemctl probe: one mac and one phone through a relay, each step timed.
#include "tandem/app/ctl.hpp"
#include "tandem/app/probe.hpp"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

struct ProbeOptions {
  std::string url;
  bool json = false;
};

double milliseconds_of(Duration d) { return std::round(to_seconds(d) * 1e5) / 1e2; }

void print_step(const ProbeStep& step, bool json) {
  using Outcome = ProbeStep::Outcome;
  if (json) {
    nlohmann::json line = {{"step", step.name}, {"ok", step.outcome == Outcome::done}};
    if (step.outcome == Outcome::done) line["ms"] = milliseconds_of(step.took);
    if (step.outcome == Outcome::skipped) line["skipped"] = true;
    if (!step.detail.empty()) line["detail"] = step.detail;
    std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    return;
  }
  if (step.outcome == Outcome::failed) return;  // said in full on stderr
  char time[32] = "   skipped   ";
  if (step.outcome == Outcome::done) std::snprintf(time, sizeof time, "%10.2f ms", to_seconds(step.took) * 1e3);
  std::cout << time << "  " << step.name << (step.detail.empty() ? "" : ": " + step.detail) << std::endl;
}

int run_probe(const ProbeOptions& options) {
  const std::string host = host_of_origin(options.url);
  if (host.empty())
    return fail("probe: '" + options.url + "' is not an https: or wss: origin such as https://relay1.example.com",
                kUsage);
  const ProbeResult result =
      probe({host, client::trust_system()}, [&](const ProbeStep& step) { print_step(step, options.json); });

  int code = kOk;
  if (!result.ok) {
    code = fail("probe " + options.url + ": " + result.fault + (result.advice.empty() ? "" : "; " + result.advice));
  } else if (options.json) {
    const nlohmann::json line = {{"ok", true},
                                 {"url", options.url},
                                 {"ms", milliseconds_of(result.took)},
                                 {"attestation_required", result.attestation_demanded}};
    std::cout << line.dump() << std::endl;
  } else if (result.attestation_demanded) {
    std::cout << "ok, as far as a probe can tell: " << options.url
              << " parks macs and demands attestation of new phones (attest.required).\n"
                 "A probe cannot attest, so pairing, registration, rejoin, frames and deletion were not tried; "
                 "real phones try them."
              << std::endl;
  } else {
    std::printf("ok: %s paired, rejoined and carried frames in %.2f s\n", options.url.c_str(), to_seconds(result.took));
    std::fflush(stdout);
  }
  // A name look-up that hangs cannot be stopped, and leaving the usual way would wait for it.
  if (result.timed_out) std::_Exit(code);
  return code;
}

}  // namespace

void add_probe(Ctl& ctl) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App* command = ctl.app->add_subcommand("probe", "Pair a mac and a phone through a relay and time each step");
  command->add_option("url", options->url, "The relay's origin, https: or wss:; SSL_CERT_FILE names the CAs to believe")
      ->type_name("URL")
      ->required();
  command->add_flag("--json", options->json, "Print one JSON object a step, and one for the whole");
  command->callback([&ctl, options] { ctl.run = [options] { return run_probe(*options); }; });
}

}  // namespace tandem::app
