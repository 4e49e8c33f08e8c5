// Who a client is: the socket's address, or what a trusted proxy says of it (3-operations 3.2). Pure.
#pragma once

#include "tandem/core/ids.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem::net {

struct RequestHead;

// An IPv4 or IPv6 address, IPv4 as ::ffff:a.b.c.d, so that a mapped one counts as IPv4.
struct Address {
  std::array<std::uint8_t, 16> bytes{};

  [[nodiscard]] static Address v4(const std::array<std::uint8_t, 4>& octets) noexcept;
  [[nodiscard]] static Address v6(const std::array<std::uint8_t, 16>& octets) noexcept { return {octets}; }
  // A bare literal: no port, brackets, zone or space.
  [[nodiscard]] static std::optional<Address> parse(std::string_view text);
  [[nodiscard]] bool is_v4() const noexcept;
  [[nodiscard]] ClientKey key() const noexcept;  // IPv6: the /64
  friend bool operator==(const Address&, const Address&) = default;
};

// An address block, "127.0.0.0/8" or "::1/128"; a bare address is a block of one.
struct AddressBlock {
  Address base;
  unsigned prefix = 128;  // bits of the 16-byte form

  [[nodiscard]] static std::optional<AddressBlock> parse(std::string_view text);  // bits behind the prefix must be zero
  [[nodiscard]] bool contains(const Address& address) const noexcept;
};

struct ProxySettings {
  enum class Trust : std::uint8_t { none, forwarded_for, cloudflare, proxy_protocol };
  Trust trust = Trust::none;
  std::uint32_t hops = 1;          // from the right, 1 the right-most
  std::vector<AddressBlock> from;  // only these may speak for others

  [[nodiscard]] bool trusts(const Address& socket) const noexcept;
};

// For the header modes; for others, and wherever a trusted proxy says nothing usable, the address of the socket.
[[nodiscard]] Address client_of(const RequestHead& head, const Address& socket, const ProxySettings& proxy);

// The head of the PROXY protocol, versions 1 and 2, strictly.
struct ProxyHeader {
  std::size_t size = 0;  // bytes it takes
  std::optional<Address>
      client;  // nothing for LOCAL, UNKNOWN and families other than TCP over IP: the socket's address
};
struct ProxyNeedMore {};
struct ProxyBroken {};  // close at once, unanswered
inline constexpr std::size_t kMaxProxyHeader = 4096;
[[nodiscard]] std::variant<ProxyNeedMore, ProxyBroken, ProxyHeader> parse_proxy_header(std::string_view in);

}  // namespace tandem::net
