// The façade of the pure half: who may come in, which rooms are ours, who is spliced to whom, when each thing ends. It
// holds the room registry, the ownership, the drain queue, rates and quotas; it knows no socket, file, clock, thread or
// log.
//
// Use: call handle() for each event and advance() when next_deadline() has come; perform the effects in order after the
// call. Effects never re-enter. Time never runs backwards (Now::mono); the wall clock may step. Single-threaded. Cost:
// handle() is O(1) in rooms and buckets but for MapReceived and SettingsChanged; advance() grows with what is due.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/core/random.hpp"
#include "tandem/relay/effect.hpp"
#include "tandem/relay/event.hpp"
#include "tandem/relay/settings.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tandem::relay {

// Row 3 of the entry gate.
struct OwnerCheck {
  bool ours = true;
  std::string owner;  // the host for `x-relay-owner`; empty where nobody owns the bucket
};

// Rows 5 to 7 of the entry gate.
enum class RequestKind : std::uint8_t { upgrade, attest, other_post };  // attest: both /attest paths
struct Charge {
  std::optional<RejectReason> refused;
  std::uint32_t retry_after_seconds = 0;
};

struct MapOutcome {
  enum class Kind : std::uint8_t { adopted, same, older, equal_differs } kind = Kind::same;
};

// Counts, all kept up to date incrementally: reading them costs nothing.
struct Snapshot {
  struct {
    std::uint64_t spliced = 0, mac_only = 0, phone_only = 0, pending = 0;
  } rooms;
  struct {
    std::uint64_t pending = 0, admitted = 0;
  } sockets;
  bool resolved = false, has_map = false, shedding = false, stopping = false;
  MapVersion version, floor;
  std::uint32_t owned_buckets = 0;
  std::vector<std::pair<Bucket, Bucket>> owned_ranges;  // inclusive, ascending, merged
  struct {
    std::uint32_t buckets = 0;
    std::uint64_t rooms = 0;
    std::optional<Duration> next_eviction, expected_end;  // from now
  } draining;
  std::uint64_t egress_bytes_month = 0;
  std::uint64_t rooms_in_memory = 0;  // those above, and what rests of rooms without sockets
};

// Why a join would be refused now (tandemctl explain).
struct Explanation {
  std::string tag;
  Bucket bucket;
  std::string owner;  // empty: nobody
  bool ours = false, draining = false;
  std::string state;                       // "none" (no room in memory), "pending", "mac_only", "phone_only", "spliced"
  bool established = false, known = true;  // known false: not in memory, the store was not asked
  std::optional<Duration> quota_resets_in;                // where the room's daily quota is spent
  std::vector<std::string> mac_refusals, phone_refusals;  // wire texts in the order they would come; empty: admitted
};

class Relay {
 public:
  Relay(Settings settings, RandomSource& random, Observer& observer);  // both outlive the relay
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // ---- the entry gate; nothing is charged by check_owner
  [[nodiscard]] OwnerCheck check_owner(const RoomName& room) const;
  [[nodiscard]] Charge charge(RequestKind kind, const RoomName& room, const ClientKey& client, Now now);

  // ---- events
  [[nodiscard]] Effects handle(const Event& event, Now now);
  [[nodiscard]] Effects advance(Now now);
  [[nodiscard]] TimePoint next_deadline() const;      // kNever where nothing waits
  [[nodiscard]] MapOutcome last_map_outcome() const;  // of the newest MapReceived

  // ---- data path: bytes handed to the kernel, for the monthly budget; O(1)
  void count_egress(std::uint64_t bytes) noexcept;

  // ---- looking
  [[nodiscard]] Snapshot snapshot(Now now) const;
  [[nodiscard]] Explanation explain(const RoomName& room, Now now) const;
  // Every cross-reference holds. Tests ask after every call, sanitized builds assert it while rooms are few (it is
  // O(rooms)); every build asserts each room that a call has touched.
  [[nodiscard]] bool is_consistent() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::relay
