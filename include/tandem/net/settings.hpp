// What the network half is configured with: the part of the operator's config about sockets. Replaced whole by a
// reload.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/net/client_address.hpp"

#include <cstdint>
#include <optional>

namespace tandem::net {

struct Settings {
  ProxySettings proxy;

  std::uint64_t message_bytes = 256 * 1024;  // limits.message_bytes; UINT64_MAX: off
  std::uint32_t splice_buffer_bytes =
      64 * 1024;  // limits.splice_buffer: read at most this at once from a spliced socket
  std::uint32_t socket_buffer_bytes = 256 * 1024;  // limits.socket_buffer, as the kernel doubles it; new sockets only
  std::uint32_t fast_socket_buffer_bytes = 768 * 1024;  // limits.fast_socket_buffer, counted alike
  std::optional<std::uint64_t> room_bytes_per_second, box_bytes_per_second;

  Duration request = seconds(10);  // a handshake, a head, a body, keep-alive idling
  Duration keepalive = seconds(30);
  Duration stall = seconds(30);
  Duration shutdown = seconds(15);
};

// What one socket can cost at worst, for `tandemd --check`: bytes of this process, the kernel's buffers not counted.
struct MemoryBounds {
  std::uint64_t parked_socket, spliced_socket;
};
[[nodiscard]] MemoryBounds memory_bounds(const Settings& settings, bool tls) noexcept;

}  // namespace tandem::net
