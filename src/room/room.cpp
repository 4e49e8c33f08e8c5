#include "tandem/room/room.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace tandem::room {

// ---------------------------------------------------------------- sockets

void Room::open(SocketId socket, Turn& turn) {
  turn.observer.observe(observed::UpgradeAccepted{name_, socket});
  assert(turn.owned);
  if (pending_.size() >= kPendingPerRoom)
    close_pending_one(pending_.front().socket, CloseReason::too_many_pending, turn);
  Pending p;
  p.socket = socket;
  p.admit_by = turn.now.mono + turn.policy.admission;
  pending_.push_back(std::move(p));
}

void Room::message(SocketId socket, std::string_view payload, Turn& turn) {
  Pending* p = find_pending(socket);
  if (!p) return;
  switch (p->step) {
    case Pending::Step::hello: {
      const auto hello = protocol::parse_hello(payload);
      if (!hello) return close_pending_one(socket, CloseReason::bad_hello, turn);
      p->role = hello->role;
      p->non_displacing = hello->non_displacing;
      turn.random.fill(p->nonce);
      p->step = Pending::Step::proof;
      turn.observer.observe(observed::HelloReceived{name_, socket, p->role});
      turn.out.send(socket, protocol::nonce_message(p->nonce));
      return;
    }
    case Pending::Step::proof: {
      if (!proofs_.admit(turn.now.mono)) return refuse(socket, CloseReason::rate_limited, turn);
      auto proof = protocol::parse_proof(payload);
      if (!proof) return refuse(socket, CloseReason::bad_proof, turn);
      if (!turn.owned) return close_pending_one(socket, CloseReason::reshard, turn);
      if (knowledge_ != Knowledge::known) {
        p->step = Pending::Step::loading;
        p->proof = std::move(*proof);
        return;
      }
      return judge(socket, *proof, turn);
    }
    case Pending::Step::loading:
    case Pending::Step::held:
      return;  // the shell holds back what follows a proof until its verdict; nothing may be lost here
  }
}

void Room::ended(SocketId socket, Turn& turn) {
  if (find_pending(socket)) return forget_pending(socket);
  if (socket == mac_) return vacate(Role::mac, CloseReason::peer_gone, turn);
  if (socket == phone_) return vacate(Role::phone, CloseReason::peer_gone, turn);
}

void Room::limit_crossed(SocketId socket, Verdict verdict, Turn& turn) {
  if (socket.value == 0 || (socket != mac_ && socket != phone_)) return;
  switch (verdict) {
    case Verdict::ok: return;
    case Verdict::frame_rate_exceeded: {
      const Role role = socket == mac_ ? Role::mac : Role::phone;
      turn.out.close(socket, CloseReason::frame_rate_exceeded);
      vacate(role, CloseReason::peer_gone, turn);
      meter_.forgive_rate();
      return;
    }
    case Verdict::daily_quota_exceeded:
      turn.observer.observe(observed::QuotaExceeded{name_});
      return close_all(CloseReason::daily_quota_exceeded, turn);
  }
}

void Room::close_all(CloseReason reason, Turn& turn) {
  close_pending(reason, turn);
  for (SocketId* slot : {&mac_, &phone_}) {
    if (slot->value != 0) turn.out.close(std::exchange(*slot, SocketId{}), reason);
  }
}

void Room::close_pending(CloseReason reason, Turn& turn) {
  while (!pending_.empty()) close_pending_one(pending_.front().socket, reason, turn);
}

// The slot's holder is gone, or has been closed already; its peer must re-park.
void Room::vacate(Role role, CloseReason reason_for_peer, Turn& turn) {
  SocketId& slot = role == Role::mac ? mac_ : phone_;
  SocketId& peer = role == Role::mac ? phone_ : mac_;
  slot = {};
  if (peer.value != 0) turn.out.close(std::exchange(peer, SocketId{}), reason_for_peer);
}

// ---------------------------------------------------------------- the verifier

void Room::loaded(std::optional<Registration> stored, Turn& turn) {
  if (knowledge_ == Knowledge::known) return;
  knowledge_ = Knowledge::known;
  if (stored) {
    // A stamp from the future was written under a wrong clock: it counts as now, or the room would never expire.
    const Duration age = std::max(Duration::zero(), Duration(turn.believed_wall - stored->last_contact));
    if (age >= turn.policy.established_idle) {
      turn.observer.observe(observed::RoomExpired{name_});
      turn.out.wipe(name_);
    } else {
      last_contact_ = turn.now.mono - age;
      registration_ = std::make_unique<Registration>(*stored);
    }
  }
  std::vector<std::pair<SocketId, protocol::Proof>> waiting;
  for (Pending& p : pending_) {
    if (p.step == Pending::Step::loading) waiting.emplace_back(p.socket, std::exchange(p.proof, {}));
  }
  for (auto& [socket, proof] : waiting) judge(socket, proof, turn);
}

void Room::establish(const Registration& registration, Turn& turn) {
  assert(knowledge_ == Knowledge::known && !registration_);
  registration_ = std::make_unique<Registration>(registration);
  last_contact_ = turn.now.mono;
  turn.observer.observe(observed::RoomEstablished{name_});
  // A phone that is held was judged by the rules of a pairing room; from now on it would need a signature.
  std::vector<SocketId> unsigned_held;
  for (const Pending& p : pending_) {
    if (p.step == Pending::Step::held && p.via != Via::signature) unsigned_held.push_back(p.socket);
  }
  for (const SocketId s : unsigned_held) refuse(s, CloseReason::signature_required, turn);
}

void Room::wipe(CloseReason why, Turn& turn) {
  registration_.reset();
  secrets_.reset();
  cycles_ = 0;
  close_all(why, turn);
}

void Room::forget(const Policy& policy) {
  assert(state() == RoomState::empty);
  registration_.reset();
  secrets_.reset();
  proofs_ = {};
  meter_ = Meter(&policy.meter);
  knowledge_ = Knowledge::unknown;
}

Secrets& Room::secrets() {
  if (!secrets_) secrets_ = std::make_unique<Secrets>();
  return *secrets_;
}

// ---------------------------------------------------------------- time

void Room::advance(Turn& turn) {
  const TimePoint now = turn.now.mono;
  std::vector<std::pair<SocketId, CloseReason>> due;
  for (const Pending& p : pending_) {
    if (p.held_until <= now) {
      due.emplace_back(p.socket, CloseReason::mac_offline);
    } else if (p.admit_by <= now) {
      due.emplace_back(p.socket, CloseReason::admission_timeout);
    }
  }
  for (const auto& [socket, reason] : due) {
    if (reason == CloseReason::mac_offline) {
      refuse(socket, reason, turn);
    } else {
      close_pending_one(socket, reason, turn);
    }
  }
  if (registration_ && now - last_contact_ >= turn.policy.established_idle) {
    turn.observer.observe(observed::RoomExpired{name_});
    turn.out.wipe(name_);
    wipe(CloseReason::room_expired, turn);
  }
  if (secrets_) {
    secrets_->purge(now);
    if (secrets_->empty()) secrets_.reset();
  }
  if (!proofs_.empty() && proofs_.idle_at() <= now) proofs_.forget(now);
}

TimePoint Room::next_deadline(const Policy& policy) const {
  TimePoint next = kNever;
  for (const Pending& p : pending_) next = std::min({next, p.admit_by, p.held_until});
  if (registration_) next = std::min(next, last_contact_ + policy.established_idle);
  if (secrets_) next = std::min(next, secrets_->next_expiry());
  return std::min(next, proofs_.idle_at());
}

bool Room::is_forgettable() const {
  return state() == RoomState::empty && (!secrets_ || secrets_->empty()) && proofs_.empty();
}

bool Room::quota_runs(TimePoint now) const { return meter_.window_bytes() > 0 && now < meter_.window_end(); }

// ---------------------------------------------------------------- looking

RoomState Room::state() const noexcept {
  if (mac_.value != 0) return phone_.value != 0 ? RoomState::spliced : RoomState::mac_only;
  if (phone_.value != 0) return RoomState::phone_only;
  return pending_.empty() ? RoomState::empty : RoomState::pending;
}

std::vector<SocketId> Room::sockets() const {
  std::vector<SocketId> all;
  all.reserve(pending_.size() + 2);
  for (const Pending& p : pending_) all.push_back(p.socket);
  for (const SocketId s : {mac_, phone_}) {
    if (s.value != 0) all.push_back(s);
  }
  return all;
}

bool Room::is_consistent() const {
  if (pending_.size() > kPendingPerRoom || cycles_ > kPairingCycles) return false;
  if (mac_.value != 0 && mac_ == phone_) return false;
  if (phone_.value != 0 && mac_.value == 0) return false;  // whoever loses its peer is closed
  if (registration_ && knowledge_ != Knowledge::known) return false;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Pending& p = pending_[i];
    if (p.socket.value == 0 || p.socket == mac_ || p.socket == phone_) return false;
    if ((p.step == Pending::Step::held) != (p.held_until != kNever)) return false;
    if (p.step == Pending::Step::held && (mac_.value != 0 || p.role != Role::phone)) return false;
    if (p.step == Pending::Step::loading && knowledge_ == Knowledge::known) return false;
    for (std::size_t k = 0; k < i; ++k) {
      if (pending_[k].socket == p.socket) return false;
    }
  }
  return true;
}

}  // namespace tandem::room
