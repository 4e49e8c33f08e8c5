// Buffers that all connections of a loop share, as only one of them is read at a time (5-performance 5.3.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tandem::net {

class Transport;

struct LoopBuffers {
  static constexpr std::size_t kCipherIn = 128 * 1024;
  static constexpr std::size_t kPlain = 16 * 1024;   // a TLS record's worth
  static constexpr std::size_t kFrames = 16 * 1024;  // frames for one SSL_write: exactly one full record

  std::unique_ptr<std::uint8_t[]> cipher_in = std::make_unique<std::uint8_t[]>(kCipherIn);
  std::unique_ptr<std::uint8_t[]> plain = std::make_unique<std::uint8_t[]>(kPlain);
  std::unique_ptr<std::uint8_t[]> frames = std::make_unique<std::uint8_t[]>(kFrames);

  // What the connection being read has received and not yet decrypted.
  Transport* reader = nullptr;
  std::size_t in_at = 0, in_end = 0;

  // What one connection has to send and has not been sent yet: at most one at a time.
  Transport* writer = nullptr;
  std::vector<std::uint8_t> out;

  // Blocks for what sockets cannot send yet, to be lent again.
  static constexpr std::size_t kSpares = 8, kSpareBytes = 160 * 1024;
  std::vector<std::vector<std::uint8_t>> spare;

  std::uint64_t sent_bytes = 0;  // handed to the kernel since the loop last looked
};

}  // namespace tandem::net
