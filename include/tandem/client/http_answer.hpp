// Reads one HTTP/1.1 answer of a relay, to an upgrade or a POST. Small on purpose: what a relay sends, and refusal of
// anything else. Pure.
#pragma once

#include "tandem/core/base64.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tandem::client {

class HttpAnswer {
 public:
  enum class State : std::uint8_t { incomplete, complete, malformed };

  // Feeds bytes; what is behind a complete answer (the first frames behind a 101) is kept in rest().
  State feed(ByteView bytes);
  State end();  // the stream ended: completes a body without a length

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::uint16_t status() const noexcept { return status_; }
  [[nodiscard]] std::string_view header(std::string_view lower_case_name) const;  // empty where there is none
  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  [[nodiscard]] ByteView rest() const noexcept { return bytes_of(buffer_); }

 private:
  State parse_head(std::string_view head);
  State parse_body();
  State parse_chunks();

  State state_ = State::incomplete;
  bool has_head_ = false, chunked_ = false, has_length_ = false;
  std::uint16_t status_ = 0;
  std::size_t length_ = 0;
  std::map<std::string, std::string, std::less<>> headers_;
  std::string buffer_, body_;
};

}  // namespace tandem::client
