// Drives a real mac and a real phone through a relay, step by step, and times each: what `tandemctl probe` prints and a
// monitoring check relies on (3-operations 3.1). Uses a fresh room each time and deletes it at the end.
//
// Blocking; gives up at the deadline, whatever hangs. Where the relay demands attestation, which a probe cannot give,
// the steps behind it are reported as skipped and the probe is no failure.
#pragma once

#include "tandem/client/tls_socket.hpp"
#include "tandem/core/time.hpp"

#include <functional>
#include <string>

namespace tandem::app {

struct ProbeStep {
  enum class Outcome { done, skipped, failed } outcome = Outcome::done;
  std::string name;    // "mac: TLS handshake", "echo 64 KiB mac to phone and back"
  Duration took{};     // of this step alone
  std::string detail;  // why it failed or was skipped
};

struct ProbeResult {
  bool ok = false;
  bool attestation_demanded = false;
  bool timed_out = false;
  std::string fault;  // "mac: TLS handshake: certificate: ..."; empty where ok
  std::string advice;
  Duration took{};
};

struct ProbeTarget {
  std::string host;  // an authority, without :443
  client::TlsTrust trust;
  Duration patience = seconds(14);
};

[[nodiscard]] ProbeResult probe(const ProbeTarget& target, const std::function<void(const ProbeStep&)>& report);

// "https://relay1.test" or "wss://relay1.test/" to "relay1.test"; empty where it is no such origin.
[[nodiscard]] std::string host_of_origin(const std::string& url);

}  // namespace tandem::app
