// One room's state machine: who knocks, who holds the mac's and the phone's slot, who is turned away and why
// (1-wire 1.4 to 1.6). It knows no socket beyond its id, no other room, no map, no store; what must happen goes to the
// Outbox of the call's Turn.
//
// A socket is un-admitted (hello, proof, waiting for the store, held for a mac) or holds a slot, never both. Every
// close carries its reason. After close() the socket is forgotten. Calls about a socket that is not here do nothing: it
// was closed just now.
#pragma once

#include "tandem/core/close_reason.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/observer.hpp"
#include "tandem/core/random.hpp"
#include "tandem/protocol/admission.hpp"
#include "tandem/protocol/derivation.hpp"
#include "tandem/room/meter.hpp"
#include "tandem/room/proof_rate.hpp"
#include "tandem/room/secrets.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::room {

// The part of the settings that a room obeys.
struct Policy {
  std::string origin;
  bool attest_required = true;
  Duration admission = seconds(15);
  Duration rendezvous = seconds(2);
  Duration established_idle = std::chrono::hours(24 * 30);
  MeterLimits meter;
};

// What a room wants done. Performed by the relay, in order.
class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void send(SocketId socket, std::string text) = 0;
  virtual void admit(SocketId socket, Role role, Meter& meter) = 0;
  virtual void splice(SocketId mac, SocketId phone) = 0;
  virtual void close(SocketId socket, CloseReason reason) = 0;
  virtual void touch(const RoomName& room, WallTime at) = 0;  // authenticated contact
  virtual void wipe(const RoomName& room) = 0;                // the store forgets it too; no answer wanted
};

// One call into a room: what it may look at and where it puts what it wants.
struct Turn {
  const Policy& policy;
  RandomSource& random;
  Observer& observer;
  Outbox& out;
  Now now;
  WallTime believed_wall{};  // see steady_wall.hpp
  bool owned = true;         // this host owns the room's bucket
};

struct Registration {
  Ed25519PublicKey verifier{};
  std::optional<Sha256> registrant;
  WallTime last_contact{};
};

enum class RoomState : std::uint8_t { empty, pending, mac_only, phone_only, spliced };

class Room {
 public:
  // unknown: nobody asked the store for the room's verifier yet; loading: proofs wait for its answer.
  enum class Knowledge : std::uint8_t { unknown, loading, known };

  Room(const RoomName& name, const Policy& policy) : name_(name), meter_(&policy.meter) {}

  // ---- sockets
  void open(SocketId socket, Turn& turn);                               // precondition: the bucket is ours
  void message(SocketId socket, std::string_view payload, Turn& turn);  // of an un-admitted socket
  void ended(SocketId socket, Turn& turn);
  void limit_crossed(SocketId socket, Verdict verdict, Turn& turn);
  void close_all(CloseReason reason, Turn& turn);
  void close_pending(CloseReason reason, Turn& turn);

  // ---- the verifier
  void expect_load() noexcept { knowledge_ = Knowledge::loading; }
  void loaded(std::optional<Registration> stored, Turn& turn);   // judges the proofs that waited
  void establish(const Registration& registration, Turn& turn);  // precondition: known, not established
  void wipe(CloseReason why, Turn& turn);                        // a signed delete or expiry: all but the quota goes

  // ---- time
  void advance(Turn& turn);  // everything that is due
  [[nodiscard]] TimePoint next_deadline(const Policy& policy) const;
  [[nodiscard]] bool is_forgettable() const;  // holds nothing that its store does not, but for a quota
  [[nodiscard]] bool quota_runs(TimePoint now) const;
  void resume_quota(const Meter& meter) { meter_ = meter; }  // precondition: nobody was admitted yet
  void forget(const Policy& policy);                         // precondition: no sockets; the bucket moved: all goes

  // ---- looking
  [[nodiscard]] const RoomName& name() const noexcept { return name_; }
  [[nodiscard]] RoomState state() const noexcept;
  [[nodiscard]] Knowledge knowledge() const noexcept { return knowledge_; }
  [[nodiscard]] const Registration* registration() const noexcept { return registration_.get(); }
  [[nodiscard]] Secrets& secrets();
  [[nodiscard]] const Meter& meter() const noexcept { return meter_; }
  [[nodiscard]] SocketId occupant(Role role) const noexcept { return role == Role::mac ? mac_ : phone_; }
  [[nodiscard]] std::size_t pending_count() const noexcept { return pending_.size(); }
  [[nodiscard]] std::size_t admitted_count() const noexcept {
    return (mac_.value != 0 ? 1u : 0u) + (phone_.value != 0 ? 1u : 0u);
  }
  [[nodiscard]] TimePoint idle_since() const noexcept { return std::max(meter_.last_traffic(), last_admission_); }
  [[nodiscard]] bool proofs_spent(TimePoint now) const noexcept { return proofs_.is_spent(now); }
  [[nodiscard]] std::vector<SocketId> sockets() const;
  [[nodiscard]] bool is_consistent() const;

 private:
  struct Pending {
    enum class Step : std::uint8_t { hello, proof, loading, held };
    SocketId socket;
    TimePoint admit_by;
    TimePoint held_until = kNever;
    std::uint64_t held_order = 0;
    Step step = Step::hello;
    Role role = Role::mac;
    Via via = Via::open;
    bool non_displacing = false;
    protocol::Nonce nonce{};
    protocol::Proof proof;  // while loading
    AttestedKeyPtr key;     // of the ticket that was spent
  };

  [[nodiscard]] Pending* find_pending(SocketId socket);
  void judge(SocketId socket, const protocol::Proof& proof, Turn& turn);
  void place(SocketId socket, Turn& turn);
  void seat(SocketId socket, Turn& turn);
  void seat_newest_held(Turn& turn);
  void refuse(SocketId socket, CloseReason reason, Turn& turn);
  void forget_pending(SocketId socket);
  void close_pending_one(SocketId socket, CloseReason reason, Turn& turn);
  void vacate(Role role, CloseReason reason_for_peer, Turn& turn);

  RoomName name_;
  Meter meter_;
  SocketId mac_, phone_;
  std::vector<Pending> pending_;  // in the order they came
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<Secrets> secrets_;
  ProofRate proofs_;
  TimePoint last_contact_{}, last_admission_{};  // the contact as monotonic time
  Knowledge knowledge_ = Knowledge::unknown;
  std::uint8_t cycles_ = 0;
};

}  // namespace tandem::room
