// The data path: frames from one admitted endpoint to the other (1-wire 1.5). No allocation, effect or log line per
// frame.
//
// What a source sends is unmasked straight into the loop's frame buffer, behind a reserved head, and goes to the
// destination's TLS in full records. A frame on the way out holds only bytes that are here, so that control frames
// always find a boundary; a message larger than that leaves as fragments. All of a turn's bytes are written before the
// turn ends.
#include "net/connection.hpp"
#include "net/loop.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace tandem::net {
namespace {

constexpr std::size_t kReservedHead = 4;  // enough for what fits the buffer
constexpr std::size_t kWorthSplitting = 4096;
static_assert(LoopBuffers::kFrames < 65536);

}  // namespace

void Connection::forward(std::span<const std::uint8_t> in) {
  Batch& batch = loop_.batch;
  std::uint8_t* const frames = loop_.buffers.frames.get();
  while (!in.empty()) {
    if (!batch.open) open_fragment();
    const std::size_t n = std::min(LoopBuffers::kFrames - batch.size, in.size());
    if (n == 0) {
      close_fragment(false);
      write_batch();
      continue;
    }
    reader_.take(frames + batch.size, in.first(n));
    batch.size += n;
    in = in.subspan(n);
  }
}

void Connection::open_fragment() {
  Batch& batch = loop_.batch;
  const std::size_t room = LoopBuffers::kFrames - batch.size;
  // Not split for the sake of a small rest; a large message fills the record to its end.
  if (room < kReservedHead + 1 || (room < kWorthSplitting && reader_.remaining() + kReservedHead > room)) write_batch();
  batch.frame_at = batch.size;
  batch.size += kReservedHead;
  batch.open = true;
}

void Connection::close_fragment(bool fin) {
  Batch& batch = loop_.batch;
  assert(batch.open);
  batch.open = false;
  std::uint8_t* const head = loop_.buffers.frames.get() + batch.frame_at;
  const std::size_t payload = batch.size - batch.frame_at - kReservedHead;
  if (payload == 0 && !fin) {
    batch.size = batch.frame_at;
    return;
  }
  const Opcode opcode = course_ == Course::begun ? Opcode::continuation : message_opcode_;
  const std::size_t size = write_frame_head(head, opcode, fin, payload);
  if (size < kReservedHead) {
    std::memmove(head + size, head + kReservedHead, payload);  // a hundred bytes at most
    batch.size -= kReservedHead - size;
  }
  course_ = Course::begun;
  peer_->bytes_out_ += payload;
  auto& relayed = role_ == Role::mac ? loop_.counters.from_mac : loop_.counters.from_phone;
  relayed.bytes += payload;
  if (pace_ != nullptr) pace_->spend(payload);
  if (loop_.box.on()) loop_.box.spend(payload);
}

void Connection::write_batch() {
  Batch& batch = loop_.batch;
  assert(!batch.open);
  if (batch.size == 0) return;
  if (peer_ != nullptr) {
    peer_->transport_.write(std::span<const std::uint8_t>(loop_.buffers.frames.get(), batch.size));
    loop_.touch(*peer_);
  }
  batch.size = 0;
}

void Connection::finish_batch() {
  if (loop_.batch.open) close_fragment(false);
  write_batch();
}

// The room's verdict on what came; called once per piece of input, and once more before the splice changes.
void Connection::account() {
  Batch& batch = loop_.batch;
  const std::uint64_t bytes = std::exchange(batch.bytes, 0);
  const std::uint32_t messages = std::exchange(batch.messages, 0);
  if (phase_ != Phase::admitted || (bytes == 0 && messages == 0)) return;
  const room::Verdict verdict = meter_->account(bytes, messages, loop_.mono());
  if (verdict != room::Verdict::ok) dispatch(relay::event::LimitCrossed{id_, verdict});
}

// What may wait here is limits.splice_buffer: a source is read while a record's worth of it is free, and no more than
// fits.
std::size_t Connection::room_for_more() const {
  const std::size_t most = std::clamp<std::size_t>(loop_.settings.splice_buffer_bytes, 4096, LoopBuffers::kCipherIn);
  const std::size_t waiting = transport_.pending();
  return waiting == 0 ? most : waiting < most - std::min(most / 2, LoopBuffers::kPlain) ? most - waiting : 0;
}

bool Connection::full() const { return room_for_more() == 0; }

std::size_t Connection::read_budget() {
  if (peer_ == nullptr) return LoopBuffers::kCipherIn / 2;
  std::uint64_t most = peer_->room_for_more();
  const TimePoint now = loop_.mono();
  if (loop_.settings.room_bytes_per_second) {
    if (pace_ == nullptr) {
      pace_ = peer_->pace_ != nullptr ? peer_->pace_
                                      : std::make_shared<RateBucket>(*loop_.settings.room_bytes_per_second, now);
    }
    pace_->set_rate(*loop_.settings.room_bytes_per_second, now);
    most = std::min(most, pace_->available(now));
    if (most == 0) {
      pace_due_ = pace_->next(now);
      unread_ = true;
      reschedule();
      return 0;
    }
  }
  if (loop_.box.on()) {
    most = std::min(most, loop_.box.available(now));
    if (most == 0) {
      box_waiting_ = true;
      unread_ = true;
      loop_.box.wait(ConnectionPtr(this));
      loop_.reschedule_box();
    }
  }
  return static_cast<std::size_t>(most);
}

// ---------------------------------------------------------------- who is spliced to whom

void Connection::admit(Role role, room::Meter* meter) {
  if (phase_ != Phase::pending) return;
  phase_ = Phase::admitted;
  role_ = role;
  has_role_ = true;
  meter_ = meter;
  stall_due_ = kNever;
  loop_.touch(*this);  // what it sent behind its proof goes on
}

void Connection::splice_with(Connection& peer) {
  if (phase_ != Phase::admitted || peer.phase_ != Phase::admitted || peer_ == &peer) return;
  if (peer_ != nullptr) part_from(*peer_);
  if (peer.peer_ != nullptr) peer.part_from(*peer.peer_);
  peer_ = &peer;
  peer.peer_ = this;
  // The room's pace belongs to the room: whoever has one hands it on.
  if (pace_ == nullptr)
    pace_ = peer.pace_;
  else
    peer.pace_ = pace_;
  loop_.touch(*this);
  loop_.touch(peer);
}

void Connection::unsplice() {
  if (peer_ != nullptr) part_from(*peer_);
}

// Ends the splice of the two because `leaver` goes. Half a message of the leaver's is ended with an empty fragment
// before anything else is sent here; the rest of what is being received is nobody's any more.
void Connection::part_from(Connection& leaver) {
  assert(peer_ == &leaver && leaver.peer_ == this);
  if (leaver.course_ == Course::begun) {
    std::uint8_t end[kMaxServerHeader];
    transport_.write(std::span<const std::uint8_t>(end, write_frame_head(end, Opcode::continuation, true, 0)));
  }
  if (leaver.course_ != Course::none) leaver.course_ = Course::skip;
  if (course_ != Course::none) course_ = Course::skip;
  peer_ = nullptr;
  leaver.peer_ = nullptr;
  forget_speed();
  leaver.forget_speed();
  loop_.touch(*this);
  loop_.touch(leaver);
}

void Connection::leave_splice() {
  if (peer_ != nullptr) peer_->part_from(*this);
}

}  // namespace tandem::net
