// How a WebSocket ends: by the relay, by a fault of its own, and what is still read and written then (1-wire 1.2, 1.5).
#include "net/connection.hpp"
#include "net/loop.hpp"

#include <string>

namespace tandem::net {
namespace {

constexpr Duration kAnswer =
    milliseconds(4500);  // for the answer to our close frame, behind what is still to be sent: under 5 s
constexpr Duration kDiscard = seconds(2);  // reading and throwing away what a client goes on sending
constexpr Duration kSlowGrace = seconds(2);

}  // namespace

// Once per WebSocket, by whoever ended it first.
void Connection::note_end(Initiator by, std::uint16_t code, CloseReason reason) {
  if (ended_) return;
  ended_ = true;
  loop_.observe(observed::SocketEnded{room_, id_, has_role_, role_, by, code, reason, loop_.mono() - opened_, bytes_in_,
                                      bytes_out_});
}

void Connection::close_by_relay(CloseReason reason, std::string_view text) {
  if (phase_ != Phase::pending && phase_ != Phase::admitted) return;
  note_end(Initiator::relay, close_code(reason), reason);
  leave_splice();
  close_with(close_code(reason), text, kAnswer);
}

// Found here, not by the core: it hears of it and looks after the peer.
void Connection::fault(CloseReason reason) {
  finish_batch();
  if (phase_ == Phase::closing) {  // nothing that can be followed comes any more
    garbled_ = true;
    return;
  }
  garbled_ = reason != CloseReason::slow_consumer;
  stalled_out_ = reason == CloseReason::slow_consumer;
  note_end(Initiator::relay, close_code(reason), reason);
  leave_splice();
  close_with(close_code(reason), close_text(reason), stalled_out_ ? kSlowGrace : kAnswer);
  answered_ = garbled_;  // an answer could not be told from the rest: half-close as soon as ours is out
  loop_.dispatch(relay::event::SocketEnded{id_});
}

void Connection::close_with(std::uint16_t code, std::string_view text, Duration grace) {
  flush_pongs();
  std::string payload;
  payload.push_back(static_cast<char>(code >> 8));
  payload.push_back(static_cast<char>(code & 0xff));
  payload.append(text.substr(0, kMaxControlPayload - 2));
  write_frame(Opcode::close, {reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size()});
  close_phase(grace);
}

void Connection::close_phase(Duration grace) {
  phase_ = Phase::closing;
  meter_ = nullptr;
  closing_since_ = loop_.mono();
  deadline_ = closing_since_ + grace;
  ping_due_ = stall_due_ = pace_due_ = kNever;
  assembly_.reset();
  pongs_.reset();
  stash_.reset();
  pace_.reset();
  loop_.touch(*this);
}

void Connection::finish() {
  if (transport_.pending() != 0 && !transport_.broken()) {
    answered_ = true;
    phase_ = Phase::closing;
    loop_.touch(*this);
    return;
  }
  phase_ = Phase::lingering;
  transport_.shut_write();
  deadline_ = std::min(deadline_, loop_.mono() + kDiscard);
  if (transport_.broken()) return destroy();
  reschedule();
  loop_.touch(*this);
}

// While closing only the answer to our close frame counts; after that, or where there is none to come, nothing does.
void Connection::discard() {
  const Transport::Status status = transport_.fill(LoopBuffers::kCipherIn);
  if (status == Transport::Status::dry) return;
  if (status != Transport::Status::ok) return destroy();
  if (phase_ == Phase::closing && !answered_ && !garbled_) take_in();
  if (phase_ == Phase::closing && !answered_ && loop_.mono() - closing_since_ > kDiscard) destroy();
}

}  // namespace tandem::net
