#include "tandem/config/address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <optional>

namespace tandem::config {
namespace {

std::optional<unsigned> digits(std::string_view text, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
  return value;
}

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

Result<IpAddress> IpAddress::parse(std::string_view text) {
  IpAddress out;
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos) return make_error_code(Error::bad_value);
  if (inet_pton(AF_INET, copy.c_str(), out.bytes.data()) == 1) return out;
  if (inet_pton(AF_INET6, copy.c_str(), out.bytes.data()) != 1) return make_error_code(Error::bad_value);
  out.v6 = true;
  if (std::equal(kMapped.begin(), kMapped.end(), out.bytes.begin())) {
    IpAddress v4;
    std::copy_n(out.bytes.begin() + 12, 4, v4.bytes.begin());
    return v4;
  }
  return out;
}

bool IpAddress::is_loopback() const noexcept {
  if (!v6) return bytes[0] == 127;
  std::array<std::uint8_t, 16> one{};
  one[15] = 1;
  return bytes == one;
}

bool IpAddress::is_any() const noexcept { return bytes == std::array<std::uint8_t, 16>{}; }

std::string IpAddress::text() const {
  char out[INET6_ADDRSTRLEN] = {};
  inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), out, sizeof out);
  return out;
}

Result<ListenAddress> ListenAddress::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return make_error_code(Error::bad_value);
  const auto port = digits(text.substr(colon + 1), 65535);
  std::string_view host = text.substr(0, colon);
  if (!port || *port == 0) return make_error_code(Error::bad_value);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host == "localhost" && !bracketed) host = "127.0.0.1";
  const auto ip = IpAddress::parse(host);
  const bool colons = host.find(':') != std::string_view::npos;
  if (!ip || colons != bracketed) return make_error_code(Error::bad_value);
  return ListenAddress{*ip, static_cast<std::uint16_t>(*port)};
}

std::string ListenAddress::text() const {
  return (ip.v6 ? "[" + ip.text() + "]" : ip.text()) + ":" + std::to_string(port);
}

Result<Cidr> Cidr::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto ip = IpAddress::parse(text.substr(0, slash));
  if (!ip) return make_error_code(Error::bad_value);
  const unsigned width = ip->v6 ? 128 : 32;
  unsigned bits = width;
  if (slash != std::string_view::npos) {
    const bool mapped =
        !ip->v6 && text.find(':') != std::string_view::npos;  // its prefix counts from the mapped 96 bits
    const auto given = digits(text.substr(slash + 1), mapped ? 128 : width);
    if (!given || (mapped && *given < 96)) return make_error_code(Error::bad_value);
    bits = mapped ? *given - 96 : *given;
  }
  Cidr out{*ip, static_cast<std::uint8_t>(bits)};
  for (unsigned i = 0; i < out.network.bytes.size(); ++i) {
    const unsigned keep = bits > i * 8 ? std::min(8u, bits - i * 8) : 0;
    out.network.bytes[i] = static_cast<std::uint8_t>(out.network.bytes[i] & (0xff00u >> keep));
  }
  return out;
}

bool Cidr::contains(const IpAddress& address) const noexcept {
  if (address.v6 != network.v6) return false;
  for (unsigned i = 0; i * 8 < prefix_bits; ++i) {
    const unsigned mask = 0xff00u >> std::min(8u, prefix_bits - i * 8);
    if ((address.bytes[i] & mask & 0xff) != network.bytes[i]) return false;
  }
  return true;
}

std::string Cidr::text() const { return network.text() + "/" + std::to_string(prefix_bits); }

}  // namespace tandem::config
