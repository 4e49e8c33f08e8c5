// What every room reports of itself, for metrics and logs to know: small values, no behaviour. Reporting never changes
// what happens, and a reporter may be called from inside a handle() of the pure half, so an observer only counts,
// formats or stores.
//
// A room is named by its tag alone; nothing here may carry a room name, an address, a key, a token or a client's text.
#pragma once

#include "tandem/core/close_reason.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace tandem::observed {

// ---- sockets and admission
struct UpgradeAccepted {
  RoomName room;
  SocketId socket;
};
struct Rejected {
  bool upgrade;
  RejectReason reason;
};  // rejects_total{at,reason}
struct HelloReceived {
  RoomName room;
  SocketId socket;
  Role role;
};  // debug log
struct Admitted {
  RoomName room;
  SocketId socket;
  Role role;
  Via via;
};
struct AdmissionRefused {
  RoomName room;
  SocketId socket;
  CloseReason reason;
};  // admission_rejects_total{reason}; mac_offline also counts phone_no_mac_total
struct Displaced {
  RoomName room;
  SocketId socket;
  Role role;
};  // debug log
struct SocketEnded {  // once per accepted WebSocket
  RoomName room;
  SocketId socket;
  bool has_role;
  Role role;
  Initiator by;
  std::uint16_t code;
  CloseReason reason;  // code: what travelled, or 1006
  Duration lifetime;
  std::uint64_t bytes_in, bytes_out;
};
struct QuotaExceeded {
  RoomName room;
};
struct KeepaliveTimeout {};
struct Stalled {
  Duration stood;
  bool closed;
};  // closed: counts in stalls_total
struct TlsHandshake {
  bool ok;
  bool resumed;
  Duration took;
};
// ---- endpoints
struct Endpoint {
  std::string_view path;
  std::string_view result;
};  // endpoint_total: path "attest_challenge|register|delete", result from a fixed list
struct Attest {
  std::string_view result;
  std::string_view detail;
};  // attest_total{result}; detail: internal reason for the debug log, fixed texts
struct RoomEstablished {
  RoomName room;
};
struct RoomDeleted {
  RoomName room;
};
struct RoomExpired {
  RoomName room;
};
// ---- sharding
struct MapAdopted {
  MapVersion version;
  std::uint32_t owned, acquired, relinquished;
  std::uint64_t rooms_draining;
  bool owns_nothing;
};
struct MapIgnored {
  MapVersion version;
  bool older;
};  // else equal but different
struct MapFetchFailed {
  std::string_view cause;
};  // one poll that failed after all attempts
struct MapFetchRetried {
  std::uint32_t retries;
};  // absorbed by a poll that succeeded
struct MapFetchStreak {
  bool recovered;
  std::string cause;
  std::string detail;
  std::uint32_t polls;
  Duration lasted;
};  // throttled log line
struct DrainStarted {
  std::uint32_t buckets;
  std::uint64_t rooms;
  Duration expected;
};
struct RoomEvicted {
  RoomName room;
  std::uint64_t rooms_left;
};
struct DrainEnded {
  std::uint64_t evicted;
};
// ---- the box
struct SheddingChanged {
  bool on;
  double pressure_percent;
};
struct EgressAlert {
  int percent;
  ByteCount used, limit;
};  // 80 or 100
struct StateError {
  std::string what;
};  // counted; log
struct DescriptorsExhausted {
  bool paused;
};  // accept paused / resumed
struct LoopLag {
  Duration lag;
};

}  // namespace tandem::observed

namespace tandem {

using Observed =
    std::variant<observed::UpgradeAccepted, observed::Rejected, observed::HelloReceived, observed::Admitted,
                 observed::AdmissionRefused, observed::Displaced, observed::SocketEnded, observed::QuotaExceeded,
                 observed::KeepaliveTimeout, observed::Stalled, observed::TlsHandshake, observed::Endpoint,
                 observed::Attest, observed::RoomEstablished, observed::RoomDeleted, observed::RoomExpired,
                 observed::MapAdopted, observed::MapIgnored, observed::MapFetchFailed, observed::MapFetchRetried,
                 observed::MapFetchStreak, observed::DrainStarted, observed::RoomEvicted, observed::DrainEnded,
                 observed::SheddingChanged, observed::EgressAlert, observed::StateError, observed::DescriptorsExhausted,
                 observed::LoopLag>;

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void observe(const Observed& what) = 0;
};

// Forgets everything: for tests that look elsewhere.
class NullObserver final : public Observer {
 public:
  void observe(const Observed&) override {}
};

}  // namespace tandem
