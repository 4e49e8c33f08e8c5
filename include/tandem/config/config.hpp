// The operator's configuration, whole and valid (3-operations 3.2): plain values, read-only once loaded. It decides
// nothing; it says what the file (or a default) says. Key names, bounds and texts live in config/schema.hpp, the one
// definition of them all.
//
// Paths come out absolute, or relative to the working folder when the config file itself was named so: a relative path
// in the file counts from the folder of the file. Whether the files exist and hold what they should is checked by
// app/checker.
#pragma once

#include "tandem/config/address.hpp"
#include "tandem/core/authority.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::config {

enum class TlsVersion : std::uint8_t { tls_1_2, tls_1_3 };
enum class ProxyTrust : std::uint8_t { none, forwarded_for, cloudflare, proxy_protocol };
enum class AttestEnvironment : std::uint8_t { production, development };
enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { text, json };

struct Tls {
  std::string certificate, private_key;
  TlsVersion min_version = TlsVersion::tls_1_2;
  bool allow_name_mismatch = false;
  friend bool operator==(const Tls&, const Tls&) = default;
};

struct Proxy {
  ProxyTrust trust = ProxyTrust::none;
  std::uint32_t hops = 1;  // for forwarded_for: counted from the right
  std::vector<Cidr> from;  // whose word counts
  friend bool operator==(const Proxy&, const Proxy&) = default;
};

struct ShardMapSource {
  std::string url;  // https anywhere, http on loopback, or file
  Duration poll_interval{}, drain_delay{};
  double eviction_rate = 10;  // rooms per second over the whole host, fractions allowed
  Duration fetch_timeout{};
  std::uint32_t fetch_attempts = 3;
  Duration boot_timeout{};
  std::optional<std::string> ca_file;  // none: the system's CAs
  friend bool operator==(const ShardMapSource&, const ShardMapSource&) = default;
};

struct Attest {
  bool required = true;
  std::optional<std::string> app_id;  // none: every attestation is rejected
  AttestEnvironment environment = AttestEnvironment::production;
  std::optional<std::string> root_ca;  // none: the built-in root
  friend bool operator==(const Attest&, const Attest&) = default;
};

struct EgressBudget {
  ByteCount limit;
  bool hard = false;  // refuse new rooms at 100 %
  friend bool operator==(const EgressBudget&, const EgressBudget&) = default;
};

struct Limits {
  std::optional<ByteCount> room_bytes_per_day, message_bytes;  // none: off, here and below
  std::optional<std::uint32_t> messages_per_second, upgrades_per_minute, attests_per_minute, sockets_per_client;
  std::optional<std::uint32_t> sockets, rooms;
  ByteCount splice_buffer, socket_buffer, fast_socket_buffer;  // the last two as the kernel doubles them: ask for half
  std::optional<ByteCount> room_bytes_per_second, box_bytes_per_second;  // none: not paced
  std::optional<EgressBudget> box_egress_per_month;
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct Timeouts {
  Duration request{}, admission{}, rendezvous{}, keepalive{}, stall{}, established_idle{},
      shutdown{};  // rendezvous may be 0: off
  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

struct Shed {
  double memory_pressure = 20, resume_below = 10;  // percent, PSI "some" avg10
  std::optional<std::string> pressure_file;        // none: the cgroup's, else the system's
  friend bool operator==(const Shed&, const Shed&) = default;
};

struct Log {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;
  friend bool operator==(const Log&, const Log&) = default;
};

struct Config {
  std::string file;                   // where it was read from; empty for text
  std::string hostname;               // a canonical authority (Authority::parse succeeds), never ending in :443
  std::vector<ListenAddress> listen;  // at least one
  std::optional<Tls> tls;             // none: "off", then every listener is loopback
  Proxy proxy;
  std::optional<ShardMapSource> shard_map;  // none: direct mode
  Attest attest;
  Limits limits;
  Timeouts timeouts;
  Shed shed;
  std::optional<std::string> state_path;  // none: memory only
  ListenAddress admin_listen;             // loopback
  Log log;

  [[nodiscard]] bool resolved() const noexcept { return shard_map.has_value(); }
  [[nodiscard]] Authority authority() const { return Authority::parse(hostname).value(); }
};

[[nodiscard]] std::string_view to_string(TlsVersion v) noexcept;         // "1.2"
[[nodiscard]] std::string_view to_string(ProxyTrust t) noexcept;         // "forwarded_for"
[[nodiscard]] std::string_view to_string(AttestEnvironment e) noexcept;  // "production"
[[nodiscard]] std::string_view to_string(LogLevel l) noexcept;           // "info"
[[nodiscard]] std::string_view to_string(LogFormat f) noexcept;          // "text"

}  // namespace tandem::config
