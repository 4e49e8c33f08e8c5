// What the pure half is configured with: the part of the operator's config that decides who is admitted, how long and
// how much. A reload replaces it whole (event::SettingsChanged); hostname and mode never change in a running process.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"
#include "tandem/room/meter.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::relay {

struct Settings {
  std::string hostname;   // canonical authority: map identity and proof origin
  bool resolved = false;  // false: direct mode, owns everything

  bool attest_required = true;     // attest.required
  bool attest_configured = false;  // attest.app_id is set; without it every attestation is rejected
  std::string app_id;              // attest.app_id: what an assertion must have been made for

  room::MeterLimits meter;                                 // limits.room_bytes_per_day, limits.messages_per_second
  std::optional<std::uint32_t> upgrades_per_minute = 120;  // none: off, here and below
  std::optional<std::uint32_t> attests_per_minute = 30;
  std::optional<std::uint32_t> sockets_per_client = 64;
  std::optional<std::uint64_t> sockets = 200000;
  std::optional<std::uint64_t> rooms = 200000;
  struct Egress {
    std::uint64_t limit_bytes = 0;
    bool hard = false;  // refuse new rooms at 100 %
  };
  std::optional<Egress> egress_per_month;

  Duration request = seconds(10);    // timeouts.request: how long a POST waits for the store or the worker
  Duration admission = seconds(15);  // timeouts.admission
  Duration rendezvous = seconds(2);  // timeouts.rendezvous; zero: off
  Duration established_idle = std::chrono::hours(24 * 30);

  double shed_above_percent = 20;  // shed.memory_pressure
  double shed_resume_below_percent = 10;

  Duration drain_delay = seconds(20);
  double eviction_rate = 10;  // rooms per second, over the whole host; fractions allowed
};

// Fixed by the wire contract, not configurable: see room/limits.hpp for those of a room.
inline constexpr std::size_t kControlMessageBytes = 8 * 1024;

}  // namespace tandem::relay
