// What can be said of a configuration without starting the relay: what it would do, what would stop it, what deserves a
// warning (3-operations 3.1, 3.2). Touches nothing: opens no port, fetches no map, writes no file, so that it may run
// beside the relay. The daemon uses the same judgements at its start and at a reload, and the doctor too.
#pragma once

#include "tandem/config/config.hpp"
#include "tandem/core/time.hpp"
#include "tandem/net/certificate.hpp"
#include "tandem/net/settings.hpp"
#include "tandem/shard/map.hpp"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::app {

// What the judgements depend on beside the configuration.
struct CheckFacts {
  WallTime now{};
  std::uint64_t descriptor_limit = 0;  // RLIMIT_NOFILE, the hard one: the daemon raises the soft one to it
  net::MemoryBounds memory{};          // of one socket
};
[[nodiscard]] CheckFacts facts_here(const config::Config& config);

// ---- single judgements; each text is one line that names the key and the cure

// Certificate and key cannot be loaded: the key of the configuration to blame, and why.
[[nodiscard]] std::string load_fault(const net::Certificate::Fault& fault);
// The certificate does not hold the hostname, and no test setting allows that: refuse to start, or keep the old one.
[[nodiscard]] std::optional<std::string> name_fault(const config::Config& config, const net::Certificate& certificate);
// Expired, not yet valid, fewer than 14 days left, or a mismatch that was allowed.
[[nodiscard]] std::vector<std::string> certificate_warnings(const config::Config& config,
                                                            const net::Certificate& certificate, WallTime now);
// Descriptors, attestation without an app, combinations that work but not as one would think.
[[nodiscard]] std::vector<std::string> config_warnings(const config::Config& config, const CheckFacts& facts);
// Files that are named and must be there and hold certificates: attest.root_ca, shard_map.ca_file.
[[nodiscard]] std::optional<std::string> ca_fault(const config::Config& config);
// The map does not know this host; empty where it does.
[[nodiscard]] std::string owns_nothing_warning(const config::Config& config, const shard::ShardMap& map);

// ---- all of them

struct CheckReport {
  std::optional<std::string> fault;                       // the first that would stop the start
  std::vector<std::pair<std::string, std::string>> plan;  // what it would do: "listen", "0.0.0.0:443, [::]:443"
  std::vector<std::string> warnings;
};
[[nodiscard]] CheckReport check(const config::Config& config, const CheckFacts& facts);

// `tandemd --config FILE --check [--online]`: plan and warnings on `out`, one line on `err` where it would not start.
// The exit code.
[[nodiscard]] int run_check(const std::string& file, bool online, std::ostream& out, std::ostream& err);

}  // namespace tandem::app
