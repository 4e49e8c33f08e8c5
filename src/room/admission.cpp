// The judging and seating half of a room: what a proof earns (1-wire 1.4, rules 3 to 5 and after).
#include "tandem/core/base64.hpp"
#include "tandem/room/room.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tandem::room {
namespace {

bool verifies(const Registration& room, const std::string& signature, const Bytes& transcript) {
  const auto bytes = base64_decode(signature);
  return bytes && ed25519_verify(room.verifier, transcript, *bytes);
}

}  // namespace

Room::Pending* Room::find_pending(SocketId socket) {
  const auto it = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& p) { return p.socket == socket; });
  return it == pending_.end() ? nullptr : &*it;
}

void Room::judge(SocketId socket, const protocol::Proof& proof, Turn& turn) {
  Pending* p = find_pending(socket);
  if (!p) return;  // displaced by a judgement just before
  const TimePoint now = turn.now.mono;
  if (!turn.owned) return close_pending_one(socket, CloseReason::reshard, turn);
  if (registration_) {
    if (!proof.signature) return refuse(socket, CloseReason::signature_required, turn);
    const Bytes transcript = protocol::join_transcript(p->role, p->nonce, name_, turn.policy.origin);
    if (!verifies(*registration_, *proof.signature, transcript))
      return refuse(socket, CloseReason::bad_signature, turn);
    p->via = Via::signature;
    registration_->last_contact = turn.now.wall;
    last_contact_ = now;
    turn.out.touch(name_, turn.now.wall);
  } else if (!turn.policy.attest_required) {
    p->via = Via::open;
  } else if (p->role == Role::mac) {
    p->via = Via::park;
  } else {
    if (!proof.ticket) return refuse(socket, CloseReason::ticket_required, turn);
    const auto ticket = base64_decode(*proof.ticket);
    auto key = ticket && secrets_ ? secrets_->tickets.spend(*ticket, now) : std::nullopt;
    if (!key) return refuse(socket, CloseReason::bad_ticket, turn);
    p->via = Via::ticket;
    p->key = std::move(*key);
  }
  if (meter_.quota_spent(now)) return close_pending_one(socket, CloseReason::daily_quota_exceeded, turn);
  place(socket, turn);
}

// The socket has proved itself; is there a place for it now?
void Room::place(SocketId socket, Turn& turn) {
  Pending& p = *find_pending(socket);
  if (p.non_displacing && occupant(p.role).value != 0) return refuse(socket, CloseReason::slot_occupied, turn);
  if (p.role == Role::mac) {
    cycles_ = 0;
    seat(socket, turn);
    return seat_newest_held(turn);
  }
  if (mac_.value == 0) {
    if (turn.policy.rendezvous <= Duration::zero()) return refuse(socket, CloseReason::mac_offline, turn);
    p.step = Pending::Step::held;
    p.held_until = turn.now.mono + turn.policy.rendezvous;
    p.held_order = 0;
    for (const Pending& other : pending_) p.held_order = std::max(p.held_order, other.held_order + 1);
    return;
  }
  if (!registration_) {
    if (cycles_ >= kPairingCycles) return close_all(CloseReason::pairing_cycle_cap, turn);
    ++cycles_;
  }
  seat(socket, turn);
}

void Room::seat(SocketId socket, Turn& turn) {
  const Pending p = std::move(*find_pending(socket));
  forget_pending(socket);
  SocketId& slot = p.role == Role::mac ? mac_ : phone_;
  const SocketId incumbent = std::exchange(slot, socket);
  last_admission_ = turn.now.mono;
  if (p.role == Role::mac) {
    turn.out.send(socket, protocol::admitted_message());
  } else {
    Secrets& s = secrets();
    s.tokens.purge(turn.now.mono);
    if (s.tokens.is_full()) s.tokens.drop_oldest();
    turn.out.send(socket, protocol::admitted_message(s.tokens.issue(p.key, turn.random, turn.now.mono)));
  }
  turn.observer.observe(observed::Admitted{name_, socket, p.role, p.via});
  turn.out.admit(socket, p.role, meter_);
  if (incumbent.value != 0) {
    // The incumbent's peer stays: closing it would make two reconnecting endpoints throw each other out for ever.
    turn.observer.observe(observed::Displaced{name_, incumbent, p.role});
    turn.out.close(incumbent, CloseReason::displaced);
  }
  if (mac_.value != 0 && phone_.value != 0) turn.out.splice(mac_, phone_);
}

// A mac came: the newest of the phones that were held takes the slot, the others are displaced by it.
void Room::seat_newest_held(Turn& turn) {
  const Pending* newest = nullptr;
  for (const Pending& p : pending_) {
    if (p.step == Pending::Step::held && (!newest || p.held_order > newest->held_order)) newest = &p;
  }
  if (!newest) return;
  const SocketId socket = newest->socket;
  std::vector<SocketId> others;
  for (const Pending& p : pending_) {
    if (p.step == Pending::Step::held && p.socket != socket) others.push_back(p.socket);
  }
  // A phone holds the slot only beside a mac, so that a mac which displaced another finds nobody held.
  assert(phone_.value == 0);
  if (!registration_) ++cycles_;
  seat(socket, turn);
  for (const SocketId s : others) close_pending_one(s, CloseReason::displaced, turn);
}

void Room::refuse(SocketId socket, CloseReason reason, Turn& turn) {
  turn.out.send(socket, protocol::refused_message(reason));
  turn.observer.observe(observed::AdmissionRefused{name_, socket, reason});
  close_pending_one(socket, reason, turn);
}

void Room::close_pending_one(SocketId socket, CloseReason reason, Turn& turn) {
  forget_pending(socket);
  turn.out.close(socket, reason);
}

void Room::forget_pending(SocketId socket) {
  std::erase_if(pending_, [&](const Pending& p) { return p.socket == socket; });
  if (pending_.empty()) std::vector<Pending>().swap(pending_);  // a parked mac keeps no memory of its admission
}

}  // namespace tandem::room
