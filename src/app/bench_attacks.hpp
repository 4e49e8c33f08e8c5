// What hostile and broken clients do to a relay, one script a kind: what is sent, at what pace, whether anything is
// read, and how they leave. Data only; bench_hostile.cpp performs it.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/random.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::app {

struct Attack {
  enum class Leave : std::uint8_t { close, reset, half_close };  // half_close: right after the first bytes

  std::string_view name;
  bool tls = true;         // otherwise bare TCP
  std::string first = {};  // sent once connected
  bool drip = false;       // ... byte by byte, a record each
  std::string again = {};  // then this, over and over
  std::chrono::milliseconds every{300};
  bool reads = true;
  Leave leave = Leave::close;
  std::string companion = {};  // first bytes of a second connection a moment later, which never reads
};

// The kinds of attack there are, and one of them in a fresh room.
[[nodiscard]] std::size_t attack_kinds() noexcept;
[[nodiscard]] Attack make_attack(std::size_t kind, const std::string& host, const RoomName& room, SeededRandom& random);

}  // namespace tandem::app
