#include "tandem/client/frames.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem::client {
namespace {

constexpr std::uint8_t kFinal = 0x80, kReserved = 0x70, kMasked = 0x80;
constexpr std::size_t kControlBytes = 125;

bool is_control(std::uint8_t opcode) { return (opcode & 8) != 0; }
bool is_known(std::uint8_t opcode) { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

std::uint64_t big_endian(const std::uint8_t* at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | at[i];
  return value;
}

void append_length(Bytes& out, std::uint64_t length, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(length >> shift));
}

}  // namespace

void append_frame(Bytes& out, Opcode opcode, ByteView payload, Mask mask, bool final) {
  out.reserve(out.size() + payload.size() + 14);
  out.push_back(static_cast<std::uint8_t>((final ? kFinal : 0) | static_cast<std::uint8_t>(opcode)));
  if (payload.size() <= kControlBytes) {
    out.push_back(static_cast<std::uint8_t>(kMasked | payload.size()));
  } else if (payload.size() <= 0xffff) {
    out.push_back(kMasked | 126);
    append_length(out, payload.size(), 2);
  } else {
    out.push_back(kMasked | 127);
    append_length(out, payload.size(), 8);
  }
  out.insert(out.end(), mask.begin(), mask.end());
  const std::size_t start = out.size();
  out.insert(out.end(), payload.begin(), payload.end());
  std::uint8_t* bytes = out.data() + start;
  std::size_t i = 0;
  std::uint64_t wide_mask = 0;
  std::memcpy(&wide_mask, mask.data(), 4);
  wide_mask |= wide_mask << 32;
  for (; i + 8 <= payload.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, 8);
    word ^= wide_mask;
    std::memcpy(bytes + i, &word, 8);
  }
  for (; i < payload.size(); ++i) bytes[i] ^= mask[i & 3];
}

void append_close(Bytes& out, std::uint16_t code, std::string_view reason, Mask mask) {
  Bytes payload;
  append_length(payload, code, 2);
  const std::string_view fits = reason.substr(0, kControlBytes - 2);
  payload.insert(payload.end(), fits.begin(), fits.end());
  append_frame(out, Opcode::close, payload, mask);
}

CloseFrame parse_close(ByteView payload) {
  CloseFrame close;
  if (payload.size() < 2) return close;
  close.code = static_cast<std::uint16_t>(big_endian(payload.data(), 2));
  close.reason.assign(payload.begin() + 2, payload.end());
  return close;
}

void FrameReader::feed(ByteView bytes) {
  if (at_ > 0 && (at_ == buffer_.size() || at_ > buffer_.size() / 2)) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<Message>> FrameReader::next() {
  for (;;) {
    const std::uint8_t* head = buffer_.data() + at_;
    const std::size_t held = buffer_.size() - at_;
    if (held < 2) return std::nullopt;
    const auto opcode = static_cast<std::uint8_t>(head[0] & 0x0f);
    const bool final = (head[0] & kFinal) != 0;
    if ((head[0] & kReserved) != 0 || (head[1] & kMasked) != 0 || !is_known(opcode)) return Error::malformed;
    const std::size_t short_length = head[1] & 0x7f;
    const std::size_t extra = short_length == 126 ? 2 : short_length == 127 ? 8 : 0;
    if (held < 2 + extra) return std::nullopt;
    const std::uint64_t length = extra == 0 ? short_length : big_endian(head + 2, extra);
    if ((extra == 2 && length < 126) || (extra == 8 && length <= 0xffff)) return Error::malformed;
    if (is_control(opcode)) {
      if (!final || length > kControlBytes) return Error::malformed;
    } else {
      if ((opcode == 0) != partial_.has_value()) return Error::malformed;
      if (length > max_message_bytes_ - (partial_ ? partial_->payload.size() : 0)) return Error::too_large;
    }
    if (held - 2 - extra < length) return std::nullopt;
    const std::uint8_t* begin = head + 2 + extra;
    const std::uint8_t* end = begin + length;
    at_ += 2 + extra + static_cast<std::size_t>(length);
    if (is_control(opcode)) return Message{static_cast<Opcode>(opcode), Bytes(begin, end)};
    if (partial_)
      partial_->payload.insert(partial_->payload.end(), begin, end);
    else
      partial_ = Message{static_cast<Opcode>(opcode), Bytes(begin, end)};
    if (final) return std::exchange(partial_, std::nullopt);
  }
}

}  // namespace tandem::client
