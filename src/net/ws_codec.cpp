#include "tandem/net/ws_codec.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace tandem::net {
namespace {

// The size of a client's frame head, known from its second byte on.
std::size_t head_size(std::uint8_t second) noexcept {
  const unsigned length = second & 0x7fu;
  return 2u + (length == 126 ? 2u : length == 127 ? 8u : 0u) + ((second & 0x80u) != 0 ? 4u : 0u);
}

std::uint64_t big_endian(const std::uint8_t* p, int bytes) noexcept {
  std::uint64_t out = 0;
  for (int i = 0; i < bytes; ++i) out = out << 8 | p[i];
  return out;
}

}  // namespace

FrameReader::Head FrameReader::read_head(std::span<const std::uint8_t> in, std::uint64_t message_limit) noexcept {
  assert(remaining_ == 0);
  if (have_ == 0 && in.size() >= 14) {  // the usual case: decoded where it lies
    return {decode(in.data(), head_size(in[1]), message_limit), head_size(in[1])};
  }
  std::size_t taken = 0;
  while (taken < in.size()) {
    head_[have_++] = in[taken++];
    // The first byte is judged as soon as it is here, and so is a missing mask: a violation need not wait for the rest.
    if (have_ == 1 && (head_[0] & 0x70u) != 0) return {Status::protocol_error, taken};
    if (have_ < 2) continue;
    const std::size_t size = head_size(head_[1]);
    if ((head_[1] & 0x80u) == 0) return {Status::protocol_error, taken};
    const std::size_t wanted = std::min(size - have_, in.size() - taken);
    std::memcpy(head_.data() + have_, in.data() + taken, wanted);
    have_ = static_cast<std::uint8_t>(have_ + wanted);
    taken += wanted;
    if (have_ < size) break;
    have_ = 0;
    return {decode(head_.data(), size, message_limit), taken};
  }
  return {Status::need_more, taken};
}

FrameReader::Status FrameReader::decode(const std::uint8_t* head, std::size_t size,
                                        std::uint64_t message_limit) noexcept {
  const bool fin = (head[0] & 0x80u) != 0;
  const unsigned op = head[0] & 0x0fu;
  if ((head[0] & 0x70u) != 0 || (head[1] & 0x80u) == 0) return Status::protocol_error;
  if ((op > 2 && op < 8) || op > 10) return Status::protocol_error;

  std::uint64_t length = head[1] & 0x7fu;
  if (length == 126) {
    length = big_endian(head + 2, 2);
    if (length < 126) return Status::protocol_error;
  } else if (length == 127) {
    length = big_endian(head + 2, 8);
    if (length < 65536 || length >> 63 != 0) return Status::protocol_error;
  }

  const auto opcode = static_cast<Opcode>(op);
  if (is_control(opcode)) {
    if (!fin || length > kMaxControlPayload) return Status::protocol_error;
  } else {
    if ((opcode == Opcode::continuation) != fragmented_) return Status::protocol_error;
    if (opcode != Opcode::continuation) message_bytes_ = 0;
    if (length > message_limit || message_bytes_ > message_limit - length) return Status::too_large;
    message_bytes_ += length;
    fragmented_ = !fin;
  }
  opcode_ = opcode;
  fin_ = fin;
  remaining_ = length;
  std::memcpy(mask_.data(), head + size - 4, 4);
  phase_ = 0;
  return Status::head;
}

void FrameReader::take(std::uint8_t* out, std::span<const std::uint8_t> in) noexcept {
  assert(in.size() <= remaining_);
  unmask(out, in.data(), in.size(), mask_, phase_);
  skip(in.size());
}

void FrameReader::skip(std::uint64_t bytes) noexcept {
  assert(bytes <= remaining_);
  remaining_ -= bytes;
  phase_ = static_cast<std::uint8_t>((phase_ + bytes) & 3u);
}

void unmask(std::uint8_t* out, const std::uint8_t* in, std::size_t size, const std::array<std::uint8_t, 4>& mask,
            unsigned phase) noexcept {
  std::array<std::uint8_t, 8> key;
  for (unsigned i = 0; i < 8; ++i) key[i] = mask[(i + phase) & 3u];
  const auto wide = std::bit_cast<std::uint64_t>(key);
  std::size_t i = 0;
  for (; i + 32 <= size; i += 32) {  // memcpy in and out lets the compiler use vectors whatever the alignment
    std::uint64_t block[4];
    std::memcpy(block, in + i, sizeof block);
    for (std::uint64_t& word : block) word ^= wide;
    std::memcpy(out + i, block, sizeof block);
  }
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, in + i, sizeof word);
    word ^= wide;
    std::memcpy(out + i, &word, sizeof word);
  }
  for (; i < size; ++i) out[i] = static_cast<std::uint8_t>(in[i] ^ key[i & 7u]);
}

std::size_t write_frame_head(std::uint8_t* out, Opcode opcode, bool fin, std::uint64_t size) noexcept {
  out[0] = static_cast<std::uint8_t>((fin ? 0x80u : 0u) | static_cast<unsigned>(opcode));
  if (size < 126) {
    out[1] = static_cast<std::uint8_t>(size);
    return 2;
  }
  const int bytes = size < 65536 ? 2 : 8;
  out[1] = bytes == 2 ? 126 : 127;
  for (int i = 0; i < bytes; ++i) out[2 + i] = static_cast<std::uint8_t>(size >> (8 * (bytes - 1 - i)));
  return 2u + static_cast<unsigned>(bytes);
}

CloseVerdict judge_close(std::span<const std::uint8_t> payload) noexcept {
  if (payload.empty()) return {1005, true};
  if (payload.size() == 1) return {1002, false};
  const auto code = static_cast<std::uint16_t>(payload[0] << 8 | payload[1]);
  const bool may_travel =
      (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
  if (!may_travel) return {1002, false};
  if (!is_utf8(payload.subspan(2))) return {1007, false};
  return {code, true};
}

bool is_utf8(std::span<const std::uint8_t> text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = text[i];
    if (lead < 0x80) {
      ++i;
      continue;
    }
    // The second byte's range rules out overlong forms, surrogates and what lies past U+10FFFF (Unicode, table 3-7).
    std::size_t more;
    unsigned low = 0x80, high = 0xbf;
    if (lead >= 0xc2 && lead <= 0xdf) {
      more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    if (text.size() - i <= more) return false;
    if (text[i + 1] < low || text[i + 1] > high) return false;
    for (std::size_t k = 2; k <= more; ++k)
      if ((text[i + k] & 0xc0u) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace tandem::net
