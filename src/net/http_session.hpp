// What a connection holds while it speaks HTTP: given back when it becomes a WebSocket.
#pragma once

#include "tandem/net/http_head.hpp"
#include "tandem/relay/event.hpp"

#include <optional>
#include <string>

namespace tandem::net {

struct HttpSession {
  enum class State : std::uint8_t { head, body, waiting };  // waiting: for the relay's answer

  // Behind a request that waits, at most this much is read ahead.
  static constexpr std::size_t kReadAhead = 16 * 1024;

  State state = State::head;
  std::string buffer;  // received, not yet used
  HeadScanner scanner;
  std::optional<BodyReader> body;
  std::string body_text;
  RoomName room;
  relay::Endpoint endpoint = relay::Endpoint::attest_challenge;
  RequestId request{};
  bool keep_alive = true;
  bool served = false;  // at least one request: the next head may idle
};

}  // namespace tandem::net
