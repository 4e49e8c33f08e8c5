// Signs of life and of standing still: the keepalive and the stall rule of 1-wire 1.5.
#include "net/connection.hpp"
#include "net/loop.hpp"

#include <algorithm>

namespace tandem::net {
namespace {

constexpr Duration kWorthReporting = milliseconds(100);  // shorter waits are what backpressure is for

constexpr Duration kHeldLook = milliseconds(250);

Duration stall_poll(Duration stall) { return std::clamp<Duration>(stall / 16, milliseconds(50), milliseconds(500)); }

}  // namespace

// Once an interval. Alive is who was heard, or had something acknowledged while the ping was still under way: the
// kernel's acknowledgement of the ping itself proves nothing, that of data ahead of it does. Who is left unread is not
// judged.
void Connection::check_keepalive() {
  if (speed_.fast()) judge_speed();
  const TimePoint now = loop_.mono();
  ping_due_ = now + loop_.settings.keepalive;
  const std::uint64_t acked = transport_.acknowledged();
  const bool moved = ping_out_ && std::min(acked, ping_at_) > acked_at_ping_;
  if (ping_out_ && !heard_ && !moved && !unread_) {
    loop_.observe(observed::KeepaliveTimeout{});
    note_end(Initiator::relay, 1006, CloseReason::keepalive_timeout);
    leave_splice();
    const SocketId id = id_;
    destroy();
    loop_.dispatch(relay::event::SocketEnded{id});
    return;
  }
  const bool under_way = ping_out_ && acked < ping_at_;
  heard_ = unread_ = false;
  acked_at_ping_ = acked;
  if (under_way) return;  // it still waits behind data: one is enough
  ping_at_ = transport_.written();
  ping_out_ = true;
  write_frame(Opcode::ping, {});
}

// Called when the turn ends: starts and stops watching what is to be sent.
void Connection::watch_output() {
  if (full()) {
    if (blocked_since_ == kNever) blocked_since_ = loop_.mono();
  } else if (blocked_since_ != kNever) {
    const Duration stood = loop_.mono() - blocked_since_;
    blocked_since_ = kNever;
    if (stood >= kWorthReporting && !stalled_out_) loop_.observe(observed::Stalled{stood, false});
    if (peer_ != nullptr) {
      if (meter_ != nullptr) meter_->left_unread(stood, loop_.mono());
      loop_.touch(*peer_);  // may be read again
    }
  }
  if (phase_ == Phase::admitted && stall_due_ == kNever && transport_.written() != watched_) {
    watched_ = transport_.written();
    acked_seen_ = transport_.acknowledged();
    output_moved_ = loop_.mono();
    stall_due_ = output_moved_ + stall_poll(loop_.settings.stall);
  }
}

bool Connection::held_back() const {
  return phase_ == Phase::pending && stash_ != nullptr && stash_->size() >= kEntryRead;
}

// Nobody reads a socket that is held back, so its leaving has to be looked for.
void Connection::watch_held() {
  if (stall_due_ == kNever) stall_due_ = loop_.mono() + kHeldLook;
}

void Connection::check_stall() {
  stall_due_ = kNever;
  if (phase_ == Phase::pending && transport_.is_gone()) return input_ended(true);
  if (held_back()) watch_held();
  if (phase_ != Phase::admitted) return;
  const TimePoint now = loop_.mono();
  const std::uint64_t acked = transport_.acknowledged();
  watched_ = transport_.written();
  if (acked == watched_) return;  // nothing waits; the next write starts the watch again
  // What stands here comes from there.
  if (peer_ != nullptr) peer_->judge_speed();
  if (acked != acked_seen_) {
    acked_seen_ = acked;
    output_moved_ = now;
  }
  if (now - output_moved_ >= loop_.settings.stall) {
    loop_.observe(observed::Stalled{now - output_moved_, true});
    return fault(CloseReason::slow_consumer);
  }
  stall_due_ = now + stall_poll(loop_.settings.stall);
}

}  // namespace tandem::net
