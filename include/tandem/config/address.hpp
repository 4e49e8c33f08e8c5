// Where to listen, and whose word counts: address literals as an operator writes them. Names are never looked up.
#pragma once

#include "tandem/core/error.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::config {

// An address literal in network order; v4 uses the first four bytes.
struct IpAddress {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};

  // "192.0.2.1", "2001:db8::1", no brackets, no zone. An IPv4-mapped address is its IPv4 address. Error: bad_value.
  [[nodiscard]] static Result<IpAddress> parse(std::string_view text);
  [[nodiscard]] bool is_loopback() const noexcept;  // 127.0.0.0/8, ::1
  [[nodiscard]] bool is_any() const noexcept;       // 0.0.0.0, ::
  [[nodiscard]] std::string text() const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// "0.0.0.0:443", "[::]:443"; "localhost" stands for 127.0.0.1. Ports 1 to 65535.
struct ListenAddress {
  IpAddress ip;
  std::uint16_t port = 0;

  [[nodiscard]] static Result<ListenAddress> parse(std::string_view text);
  [[nodiscard]] std::string text() const;  // with brackets where IPv6
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// "10.0.0.0/8", "::1/128"; a bare address is itself alone. Host bits are cleared.
struct Cidr {
  IpAddress network;
  std::uint8_t prefix_bits = 0;

  [[nodiscard]] static Result<Cidr> parse(std::string_view text);
  [[nodiscard]] bool contains(const IpAddress& address) const noexcept;
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Cidr&, const Cidr&) = default;
};

}  // namespace tandem::config
