// RFC 6455 on decrypted bytes, server side: reads the masked frames of a client, writes the headers of our own. Pure.
//
// FrameReader takes a stream in pieces of any size and never holds payload: the caller asks for a frame's head, then
// takes the payload where it lies, unmasking while it copies. It is strict (1-wire 1.2): every violation is a fault,
// after which the reader is not used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tandem::net {

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };
[[nodiscard]] constexpr bool is_control(Opcode op) noexcept { return static_cast<std::uint8_t>(op) >= 8; }

inline constexpr std::size_t kMaxControlPayload = 125;
inline constexpr std::size_t kMaxServerHeader = 10;

class FrameReader {
 public:
  enum class Status : std::uint8_t {
    need_more,       // all input was taken, the head is not complete
    head,            // a head is complete: opcode(), fin(), remaining() describe the frame
    protocol_error,  // close 1002
    too_large,       // close 1009: this head makes the message larger than the limit
  };
  struct Head {
    Status status;
    std::size_t taken;  // bytes of input used
  };

  // Reads on in a frame's head; only while remaining() is 0. message_limit: payload bytes of a whole message.
  [[nodiscard]] Head read_head(std::span<const std::uint8_t> in, std::uint64_t message_limit) noexcept;

  // Of the newest head. A frame with nothing remaining is complete.
  [[nodiscard]] Opcode opcode() const noexcept { return opcode_; }
  [[nodiscard]] bool fin() const noexcept { return fin_; }
  [[nodiscard]] std::uint64_t remaining() const noexcept { return remaining_; }
  [[nodiscard]] bool in_head() const noexcept { return have_ != 0; }  // part of a head was read
  [[nodiscard]] bool in_message() const noexcept {
    return fragmented_;
  }  // between the fragments of a message, or in one not final
  // Of the message whose frame is being read, this frame included.
  [[nodiscard]] std::uint64_t message_bytes() const noexcept { return message_bytes_; }

  // Unmasks the next in.size() payload bytes (at most remaining()) into out. out may be in.
  void take(std::uint8_t* out, std::span<const std::uint8_t> in) noexcept;
  void skip(std::uint64_t bytes) noexcept;

 private:
  [[nodiscard]] Status decode(const std::uint8_t* head, std::size_t size, std::uint64_t message_limit) noexcept;

  std::uint64_t remaining_ = 0, message_bytes_ = 0;
  std::array<std::uint8_t, 4> mask_{};
  std::array<std::uint8_t, 14> head_{};
  std::uint8_t have_ = 0;   // bytes in head_
  std::uint8_t phase_ = 0;  // of the mask
  Opcode opcode_ = Opcode::continuation;
  bool fin_ = true;
  bool fragmented_ = false;
};

// out[i] = in[i] ^ mask[(i + phase) % 4]; out may be in.
void unmask(std::uint8_t* out, const std::uint8_t* in, std::size_t size, const std::array<std::uint8_t, 4>& mask,
            unsigned phase) noexcept;

// Writes an unmasked frame's head, minimal length; returns its size, at most kMaxServerHeader.
std::size_t write_frame_head(std::uint8_t* out, Opcode opcode, bool fin, std::uint64_t size) noexcept;

// Whether a close frame's payload may travel, and with what our answer closes (1-wire 1.2).
struct CloseVerdict {
  std::uint16_t code;  // 1002 or 1007 where the frame is at fault; else the client's own, 1005 where it is empty
  bool valid;
};
[[nodiscard]] CloseVerdict judge_close(std::span<const std::uint8_t> payload) noexcept;

[[nodiscard]] bool is_utf8(std::span<const std::uint8_t> text) noexcept;

}  // namespace tandem::net
