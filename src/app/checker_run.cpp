// `tandemd --check`: all judgements together, and how they are printed.
#include "tandem/app/checker.hpp"
#include "tandem/app/published_map.hpp"
#include "tandem/app/settings.hpp"
#include "tandem/config/load.hpp"
#include "tandem/config/units.hpp"
#include "tandem/net/tls_context.hpp"
#include "tandem/state/store.hpp"

#include <chrono>
#include <filesystem>
#include <ostream>
#include <sys/resource.h>

namespace tandem::app {
namespace {

// What systemd makes at the first start (StateDirectory=): its absence before that is no fault.
constexpr const char* kPackagedFolder = "/var/lib/tandem";

void plan_tls(const config::Config& c, const CheckFacts& facts, CheckReport& report) {
  if (!c.tls) {
    report.plan.emplace_back("TLS", "off: a proxy on this box ends it");
    return;
  }
  auto loaded = net::Certificate::load(c.tls->certificate, c.tls->private_key);
  if (const auto* fault = std::get_if<net::Certificate::Fault>(&loaded)) {
    report.fault = load_fault(*fault);
    return;
  }
  const auto& certificate = std::get<net::Certificate>(loaded);
  report.fault = name_fault(c, certificate);
  // What only OpenSSL judges, such as a key that is too small.
  const auto made = net::TlsContext::make(certificate, net::TlsContext::MinVersion::tls12, net::make_ticket_keys());
  if (const auto* fault = std::get_if<net::Certificate::Fault>(&made)) report.fault = load_fault(*fault);
  for (std::string& warning : certificate_warnings(c, certificate, facts.now))
    report.warnings.push_back(std::move(warning));
  std::string names;
  for (const std::string& name : certificate.names()) names += (names.empty() ? "" : ", ") + name;
  const auto left = certificate.not_after() - facts.now;
  report.plan.emplace_back("TLS", std::string(to_string(c.tls->min_version)) + " or newer, certificate for " + names +
                                      ", " +
                                      (left.count() > 0 ? "valid for " + config::describe_duration(left) : "expired"));
}

void plan_state(const config::Config& c, CheckReport& report) {
  report.plan.emplace_back("state", c.state_path.value_or("memory only"));
  if (!c.state_path || report.fault) return;
  const std::filesystem::path folder = std::filesystem::path(*c.state_path).parent_path();
  std::error_code none;
  if (folder == kPackagedFolder && !std::filesystem::exists(folder, none)) {
    report.warnings.push_back("state.path: " + folder.string() +
                              " does not exist yet; the packaged service makes it at its first start");
    return;
  }
  if (const auto fault = state::Store::inspect(*c.state_path)) {
    if (fault->kind == state::Fault::Kind::damaged) {
      report.warnings.push_back("state.path: " + fault->message + "; it will be set aside at the start");
    } else {
      report.fault = "state.path: " + fault->message;
    }
  }
}

void plan_memory(const config::Config& c, const CheckFacts& facts, CheckReport& report) {
  // Without a ceiling of ours, descriptors are what ends it.
  const std::uint64_t most = c.limits.sockets ? *c.limits.sockets : facts.descriptor_limit;
  const auto sockets = static_cast<double>(most);
  const auto buffers = static_cast<double>(c.limits.socket_buffer.value);
  const double more = static_cast<double>(c.limits.fast_socket_buffer.value) - buffers;
  report.plan.emplace_back(
      "memory",
      "at most " + config::describe_size(sockets * static_cast<double>(facts.memory.spliced_socket)) + " with all " +
          std::to_string(most) + " sockets spliced and stalled (" +
          config::describe_size(sockets * static_cast<double>(facts.memory.parked_socket)) +
          " with all parked), and at most " + config::describe_size(sockets * 2 * buffers) + " of kernel buffers" +
          (more > 0 ? " (and " + config::describe_size(more) + " for each source that is fast just then)" : ""));
}

std::string mode(const config::Config& c) {
  if (!c.shard_map) return "direct: owns every room";
  return "resolved: the map at " + c.shard_map->url + ", every " + config::format_duration(c.shard_map->poll_interval);
}

std::string attestation(const config::Config& c) {
  if (!c.attest.required) return "off";
  return c.attest.app_id ? "required, app " + *c.attest.app_id + ", " + std::string(to_string(c.attest.environment))
                         : "required, no app named";
}

void print(const CheckReport& report, std::ostream& out) {
  for (const auto& [what, how] : report.plan)
    out << what << std::string(what.size() < 13 ? 13 - what.size() : 1, ' ') << how << "\n";
  for (const std::string& warning : report.warnings) out << "warning: " << warning << "\n";
}

// What the map says of this host, or why it cannot be had.
std::optional<std::string> check_map(const config::Config& c, CheckReport& report) {
  const auto got = fetch_published(*c.shard_map);
  if (const auto* fault = std::get_if<UnpublishedMap>(&got))
    return (fault->unreadable ? "shard_map.url: not a valid map: " : "shard_map.url: cannot be fetched: ") + fault->why;
  const shard::ShardMap& map = std::get<PublishedMap>(got).map;
  report.plan.emplace_back("map", "version " + std::to_string(map.version().value) + ", " +
                                      std::to_string(buckets_of(map, c.hostname)) + " of 65536 buckets here");
  if (std::string warning = owns_nothing_warning(c, map); !warning.empty())
    report.warnings.push_back(std::move(warning));
  return std::nullopt;
}

}  // namespace

CheckFacts facts_here(const config::Config& config) {
  CheckFacts facts;
  facts.now = std::chrono::floor<seconds>(std::chrono::system_clock::now());
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) facts.descriptor_limit = files.rlim_max;
  facts.memory = net::memory_bounds(net_settings(config), config.tls.has_value());
  return facts;
}

CheckReport check(const config::Config& c, const CheckFacts& facts) {
  CheckReport report;
  std::string listen;
  for (const config::ListenAddress& address : c.listen) listen += (listen.empty() ? "" : ", ") + address.text();
  report.plan.emplace_back("hostname", c.hostname + " (origin " + c.authority().origin() + ")");
  report.plan.emplace_back("listen", listen);
  report.plan.emplace_back("mode", mode(c));
  report.plan.emplace_back("attestation", attestation(c));
  report.plan.emplace_back("proxy", "trust " + std::string(to_string(c.proxy.trust)));
  plan_tls(c, facts, report);
  plan_state(c, report);
  report.plan.emplace_back("admin", "http://" + c.admin_listen.text() + "/");
  plan_memory(c, facts, report);
  if (!report.fault) report.fault = ca_fault(c);
  for (std::string& warning : config_warnings(c, facts)) report.warnings.push_back(std::move(warning));
  return report;
}

int run_check(const std::string& file, bool online, std::ostream& out, std::ostream& err) {
  const auto loaded = config::load(file);
  if (const auto* error = std::get_if<config::ConfigError>(&loaded)) {
    err << "tandemd: " << error->one_line() << "\n";
    return 1;
  }
  const auto& config = std::get<config::Config>(loaded);
  CheckReport report = check(config, facts_here(config));
  if (online && config.shard_map && !report.fault) report.fault = check_map(config, report);
  if (report.fault) {
    err << "tandemd: " << file << ": " << *report.fault << "\n";
    return 1;
  }
  print(report, out);
  out << "ok\n";
  return 0;
}

}  // namespace tandem::app
