// Strong types for what the wire and the map number: rooms, buckets, sockets, versions, bytes.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

inline constexpr std::uint32_t kBucketCount = 65536;

// A position on the ring, 0..65535 (spec: 1-wire 1.1, 2-sharding).
struct Bucket {
  std::uint16_t value = 0;
  friend constexpr auto operator<=>(Bucket, Bucket) = default;
};

struct MapVersion {  // 0 .. 2^53-1
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(MapVersion, MapVersion) = default;
};

struct ByteCount {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(ByteCount, ByteCount) = default;
};

// One accepted WebSocket; unique for the life of the process, never reused, never 0.
struct SocketId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(SocketId, SocketId) = default;
};

// One HTTP request that waits for its answer; unique for the life of the process, never 0.
struct RequestId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(RequestId, RequestId) = default;
};

enum class Role : std::uint8_t { mac = 1, phone = 2 };  // the values are those of the join transcript
[[nodiscard]] constexpr std::string_view to_string(Role r) noexcept { return r == Role::mac ? "mac" : "phone"; }
[[nodiscard]] constexpr Role other(Role r) noexcept { return r == Role::mac ? Role::phone : Role::mac; }

// A room's name: the 32 bytes of a SHA-256, 64 lowercase hex characters on the wire. Never logged; see tag().
class RoomName {
 public:
  constexpr RoomName() = default;
  constexpr explicit RoomName(const std::array<std::uint8_t, 32>& digest) noexcept : digest_(digest) {}

  // Exactly ^[0-9a-f]{64}$, else nothing.
  [[nodiscard]] static std::optional<RoomName> parse(std::string_view hex) noexcept;

  [[nodiscard]] constexpr const std::array<std::uint8_t, 32>& digest() const noexcept { return digest_; }
  [[nodiscard]] constexpr Bucket bucket() const noexcept {
    return {static_cast<std::uint16_t>(digest_[30] << 8 | digest_[31])};
  }
  [[nodiscard]] std::string hex() const;
  // The first 8 hex digits of SHA-256 over hex(): the only way a room is named in a log (3-operations 3.6).
  [[nodiscard]] std::string tag() const;

  friend constexpr auto operator<=>(const RoomName&, const RoomName&) = default;

 private:
  std::array<std::uint8_t, 32> digest_{};
};

// Who a client is, for rates: an IPv4 address, or the /64 of an IPv6 one, or "no client" (all zero).
struct ClientKey {
  std::array<std::uint8_t, 9> bytes{};  // [0] = 4 or 6, then the 4 or 8 address bytes
  friend constexpr auto operator<=>(const ClientKey&, const ClientKey&) = default;
};

}  // namespace tandem

template <>
struct std::hash<tandem::RoomName> {
  std::size_t operator()(const tandem::RoomName& n) const noexcept {
    std::size_t
        h;  // already uniform for honest clients; tables that an attacker can fill use a keyed hash (core/siphash.hpp)
    std::memcpy(&h, n.digest().data(), sizeof h);
    return h;
  }
};
template <>
struct std::hash<tandem::SocketId> {
  std::size_t operator()(tandem::SocketId i) const noexcept { return std::hash<std::uint64_t>{}(i.value); }
};
template <>
struct std::hash<tandem::RequestId> {
  std::size_t operator()(tandem::RequestId i) const noexcept { return std::hash<std::uint64_t>{}(i.value); }
};
template <>
struct std::hash<tandem::Bucket> {
  std::size_t operator()(tandem::Bucket b) const noexcept { return b.value; }
};
