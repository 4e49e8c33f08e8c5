#include "tandem/net/client_address.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::net {
namespace {

using Parsed = std::variant<ProxyNeedMore, ProxyBroken, ProxyHeader>;

constexpr std::string_view kSignature2{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::string_view kSignature1 = "PROXY ";
constexpr std::size_t kMaxLine1 = 107;

bool is_port(std::string_view s) noexcept {
  if (s.empty() || s.size() > 5 || (s.size() > 1 && s.front() == '0')) return false;
  unsigned value = 0;
  for (const char c : s) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value <= 65535;
}

// PROXY TCP4 source destination source-port destination-port CR LF
Parsed parse_1(std::string_view in) {
  const std::size_t end = in.substr(0, kMaxLine1).find("\r\n");
  if (end == std::string_view::npos) {
    // A line feed alone, or no end where it must have come.
    if (in.size() >= kMaxLine1 || in.find('\n') != std::string_view::npos) return ProxyBroken{};
    return ProxyNeedMore{};
  }
  if (in.substr(0, end).find('\n') != std::string_view::npos) return ProxyBroken{};
  std::string_view line = in.substr(kSignature1.size(), end - kSignature1.size());
  if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return ProxyHeader{end + 2, std::nullopt};
  std::array<std::string_view, 5> words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t space = line.find(' ');
    if ((space == std::string_view::npos) != (i + 1 == words.size())) return ProxyBroken{};
    words[i] = line.substr(0, space);
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  }
  const bool four = words[0] == "TCP4";
  if (!four && words[0] != "TCP6") return ProxyBroken{};
  const auto source = Address::parse(words[1]), destination = Address::parse(words[2]);
  const auto fits = [&](std::string_view w) { return four == (w.find(':') == std::string_view::npos); };
  if (!source || !destination || !fits(words[1]) || !fits(words[2]) || !is_port(words[3]) || !is_port(words[4]))
    return ProxyBroken{};
  return ProxyHeader{end + 2, source};
}

// Signature, version and command, family and protocol, length, addresses, TLVs.
Parsed parse_2(std::string_view in) {
  if (in.size() < 16) return ProxyNeedMore{};
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(in[i]); };
  const unsigned version = byte(12) >> 4, command = byte(12) & 0x0fu, family = byte(13) >> 4,
                 protocol = byte(13) & 0x0fu;
  const std::size_t length = static_cast<std::size_t>(byte(14)) << 8 | byte(15), size = 16 + length;
  if (version != 2 || command > 1 || family > 3 || protocol > 2 || size > kMaxProxyHeader) return ProxyBroken{};
  const std::size_t address_bytes = family == 1 ? 12 : family == 2 ? 36 : family == 3 ? 216 : 0;
  if (command == 1 && length < address_bytes) return ProxyBroken{};
  if (in.size() < size) return ProxyNeedMore{};
  ProxyHeader out{size, std::nullopt};
  if (command == 0 || protocol != 1) return out;
  if (family == 1) {
    std::array<std::uint8_t, 4> octets{};
    std::memcpy(octets.data(), in.data() + 16, octets.size());
    out.client = Address::v4(octets);
  } else if (family == 2) {
    std::array<std::uint8_t, 16> octets{};
    std::memcpy(octets.data(), in.data() + 16, octets.size());
    out.client = Address::v6(octets);
  }
  return out;
}

}  // namespace

Parsed parse_proxy_header(std::string_view in) {
  for (const std::string_view signature : {kSignature2, kSignature1}) {
    const std::size_t n = std::min(in.size(), signature.size());
    if (in.substr(0, n) != signature.substr(0, n)) continue;
    if (n < signature.size()) return ProxyNeedMore{};
    return signature == kSignature2 ? parse_2(in) : parse_1(in);
  }
  return ProxyBroken{};
}

}  // namespace tandem::net
