// A client's side of RFC 6455: masked frames out, unmasked frames in, messages put together again. Pure: bytes in,
// bytes out; the mask comes from the caller. The relay never negotiates extensions, so reserved bits are faults.
#pragma once

#include "tandem/core/base64.hpp"
#include "tandem/core/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::client {

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

using Mask = std::array<std::uint8_t, 4>;

// Appends one frame to `out`. `final` false begins or continues a fragmented message.
void append_frame(Bytes& out, Opcode opcode, ByteView payload, Mask mask, bool final = true);
void append_close(Bytes& out, std::uint16_t code, std::string_view reason, Mask mask);

struct Message {
  Opcode opcode = Opcode::binary;  // text, binary, close, ping or pong
  Bytes payload;
};

// The code and reason of a close frame's payload; 1005 where it is empty.
struct CloseFrame {
  std::uint16_t code = 1005;
  std::string reason;
};
[[nodiscard]] CloseFrame parse_close(ByteView payload);

class FrameReader {
 public:
  explicit FrameReader(std::size_t max_message_bytes = 1024 * 1024) : max_message_bytes_(max_message_bytes) {}

  void feed(ByteView bytes);
  // The next whole message, or control frame between a message's fragments; nothing where more bytes are needed.
  // Errors: malformed (masked, reserved bits, unknown opcode, fragmented or long control frame, a continuation of
  // nothing, a new message inside another), too_large. After an error the stream is of no use.
  [[nodiscard]] Result<std::optional<Message>> next();

 private:
  std::size_t max_message_bytes_;
  Bytes buffer_;
  std::size_t at_ = 0;  // what is before it has been read
  std::optional<Message> partial_;
};

}  // namespace tandem::client
