// A connection's WebSocket frames: who gets what is in them.
#include "net/connection.hpp"
#include "net/loop.hpp"

#include <algorithm>
#include <array>

namespace tandem::net {
namespace {

constexpr std::size_t kPongsWaiting = 31;
constexpr int kMessagesBeforeAdmission = 2;  // hello and proof

std::span<const std::uint8_t> as_bytes(std::string_view s) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

}  // namespace

void Connection::dispatch(const relay::Event& event) {
  finish_batch();  // what is on its way to the peer goes ahead of what the relay decides
  loop_.dispatch(event);
}

void Connection::consume_frames(std::span<const std::uint8_t> in) {
  while (!in.empty()) {
    const bool follows =
        phase_ == Phase::closing ? !garbled_ && !answered_ : phase_ == Phase::pending || phase_ == Phase::admitted;
    if (!follows) break;
    if (reader_.remaining() != 0) {
      in = in.subspan(take_payload(in));
      continue;
    }
    // A message behind an undecided proof waits for the decision; control frames do not.
    if (phase_ == Phase::pending && messages_ >= kMessagesBeforeAdmission && !reader_.in_head() &&
        !is_control(static_cast<Opcode>(in.front() & 0x0f))) {
      stash_ = std::make_unique<std::string>(reinterpret_cast<const char*>(in.data()), in.size());
      break;
    }
    const std::uint64_t limit = phase_ == Phase::pending ? relay::kControlMessageBytes : loop_.settings.message_bytes;
    const FrameReader::Head head = reader_.read_head(in, limit);
    in = in.subspan(head.taken);
    switch (head.status) {
      case FrameReader::Status::need_more: break;
      case FrameReader::Status::head: begin_frame(); break;
      case FrameReader::Status::protocol_error: fault(CloseReason::protocol_error); break;
      case FrameReader::Status::too_large: fault(CloseReason::frame_too_large); break;
    }
  }
  account();
}

void Connection::begin_frame() {
  if (phase_ == Phase::admitted && !is_control(reader_.opcode()) && reader_.opcode() != Opcode::continuation) {
    message_opcode_ = reader_.opcode();
    course_ = peer_ != nullptr ? Course::fresh : Course::skip;
    ++loop_.batch.messages;
  } else if (phase_ == Phase::pending && reader_.opcode() != Opcode::continuation && !is_control(reader_.opcode())) {
    message_opcode_ = reader_.opcode();
  }
  if (reader_.remaining() == 0) end_frame();
}

std::size_t Connection::take_payload(std::span<const std::uint8_t> in) {
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(in.size(), reader_.remaining()));
  const auto piece = in.first(n);
  if (is_control(reader_.opcode())) {
    gather(control_, piece);
  } else if (phase_ == Phase::pending) {
    gather(assembly_, piece);
  } else if (phase_ == Phase::admitted) {
    loop_.batch.bytes += n;
    bytes_in_ += n;
    if (course_ == Course::fresh || course_ == Course::begun)
      forward(piece);
    else
      reader_.skip(n);
  } else {
    reader_.skip(n);
  }
  if (reader_.remaining() == 0) end_frame();
  return n;
}

// Control frames and messages before admission are small and are put together before they are looked at.
void Connection::gather(std::unique_ptr<std::string>& target, std::span<const std::uint8_t> piece) {
  if (target == nullptr) target = std::make_unique<std::string>();
  const std::size_t at = target->size();
  target->resize(at + piece.size());
  reader_.take(reinterpret_cast<std::uint8_t*>(target->data()) + at, piece);
}

void Connection::end_frame() {
  if (is_control(reader_.opcode())) return control_frame();
  if (!reader_.fin()) return;
  if (phase_ == Phase::pending) return message_complete();
  if (phase_ != Phase::admitted) return;
  if (course_ == Course::fresh || course_ == Course::begun) {
    if (!loop_.batch.open) open_fragment();
    close_fragment(true);
    auto& relayed = role_ == Role::mac ? loop_.counters.from_mac : loop_.counters.from_phone;
    ++relayed.messages;
  }
  course_ = Course::none;
}

void Connection::message_complete() {
  const std::unique_ptr<std::string> message = std::move(assembly_);
  const std::string_view payload = message != nullptr ? std::string_view(*message) : std::string_view{};
  if (message_opcode_ == Opcode::text && !is_utf8(as_bytes(payload))) return fault(CloseReason::invalid_utf8);
  ++messages_;
  bytes_in_ += payload.size();
  dispatch(relay::event::MessageReceived{id_, payload});
}

void Connection::control_frame() {
  const std::unique_ptr<std::string> held = std::move(control_);
  const auto payload = held != nullptr ? as_bytes(*held) : std::span<const std::uint8_t>{};
  switch (reader_.opcode()) {
    case Opcode::ping:
      if (phase_ != Phase::closing) queue_pong(payload);
      return;
    case Opcode::close: break;
    default: return;  // a pong: that something came is all it says
  }
  if (phase_ == Phase::closing) {  // the answer to ours
    answered_ = true;
    loop_.touch(*this);
    return;
  }
  const CloseVerdict verdict = judge_close(payload);
  if (!verdict.valid) return fault(verdict.code == 1007 ? CloseReason::invalid_utf8 : CloseReason::protocol_error);
  finish_batch();
  note_end(Initiator::client, verdict.code, CloseReason::client_close);
  leave_splice();
  flush_pongs();
  write_frame(Opcode::close, payload);
  answered_ = true;
  close_phase(seconds(2));
  dispatch(relay::event::SocketEnded{id_});
}

// ---------------------------------------------------------------- frames out

void Connection::write_frame(Opcode opcode, std::span<const std::uint8_t> payload) {
  std::string out(kMaxServerHeader + payload.size(), '\0');
  auto* data = reinterpret_cast<std::uint8_t*>(out.data());
  const std::size_t head = write_frame_head(data, opcode, true, payload.size());
  std::copy(payload.begin(), payload.end(), data + head);
  transport_.write({data, head + payload.size()});
  loop_.touch(*this);
}

void Connection::send_text(std::string_view text) {
  if (phase_ != Phase::pending) return;
  bytes_out_ += text.size();
  write_frame(Opcode::text, as_bytes(text));
}

// Pongs are gathered and go out together; while output is stuck at most 32 wait, the newest always among them.
void Connection::queue_pong(std::span<const std::uint8_t> payload) {
  if (pongs_ == nullptr) pongs_ = std::make_unique<std::vector<std::string>>();
  if (pongs_->size() > kPongsWaiting && !full()) {
    // Someone in the middle of a batch to its peer may have output of its own: the two go to different sockets.
    finish_batch();
    flush_pongs();
    pongs_ = std::make_unique<std::vector<std::string>>();
  }
  if (pongs_->size() > kPongsWaiting) pongs_->pop_back();
  pongs_->emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
  loop_.touch(*this);
}

void Connection::flush_pongs() {
  if (pongs_ == nullptr) return;
  std::string out;
  for (const std::string& payload : *pongs_) {
    std::array<std::uint8_t, kMaxServerHeader> head{};
    const std::size_t size = write_frame_head(head.data(), Opcode::pong, true, payload.size());
    out.append(reinterpret_cast<const char*>(head.data()), size).append(payload);
  }
  pongs_.reset();
  transport_.write(out);
  loop_.touch(*this);
}

}  // namespace tandem::net
