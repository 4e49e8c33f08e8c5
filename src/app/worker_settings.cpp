#include "app/worker_settings.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace tandem::app {

namespace {

constexpr std::size_t kMaxRootBytes = 1024 * 1024;

}  // namespace

WorkerSettings worker_settings(const config::Config& config) {
  const bool production = config.attest.environment == config::AttestEnvironment::production;
  return {config.state_path, config.attest.app_id.value_or(""),
          production ? protocol::AttestEnvironment::production : protocol::AttestEnvironment::development,
          config.attest.root_ca};
}

std::variant<protocol::AttestPolicy, std::string> attest_policy(const WorkerSettings& settings) {
  protocol::AttestPolicy policy{settings.app_id, settings.environment, {protocol::apple_root()}};
  if (!settings.root_ca) return policy;
  std::ifstream in(*settings.root_ca, std::ios::binary);
  if (!in) return "attest.root_ca: " + *settings.root_ca + ": " + std::generic_category().message(errno);
  std::string pem(kMaxRootBytes, '\0');
  in.read(pem.data(), static_cast<std::streamsize>(pem.size()));
  pem.resize(static_cast<std::size_t>(in.gcount()));
  auto roots = protocol::parse_root_certificates(pem);
  if (!roots)
    return "attest.root_ca: " + *settings.root_ca + " holds no certificate in PEM (" + roots.error().message() + ")";
  policy.roots = std::move(*roots);
  return policy;
}

}  // namespace tandem::app
