#include "tandem/net/client_address.hpp"

#include "tandem/net/http_head.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstring>

namespace tandem::net {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::string_view trim(std::string_view s) noexcept {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// The hops-th entry from the right of all X-Forwarded-For lines as one list; of a shorter chain the right-most one.
std::optional<Address> forwarded_for(const RequestHead& head, std::uint32_t hops) {
  std::optional<std::string_view> last, wanted;
  std::uint32_t seen = 0;
  for (std::size_t i = head.field_count; i-- > 0 && !wanted;) {
    if (!equals_ignoring_case(head.fields[i].name, "x-forwarded-for")) continue;
    std::string_view list = head.fields[i].value;
    while (!wanted) {
      const std::size_t comma = list.rfind(',');
      const std::string_view entry = trim(comma == std::string_view::npos ? list : list.substr(comma + 1));
      if (!last) last = entry;
      if (++seen == hops) wanted = entry;
      if (comma == std::string_view::npos) break;
      list = list.substr(0, comma);
    }
  }
  if (!wanted) wanted = last;
  return wanted ? Address::parse(*wanted) : std::nullopt;
}

}  // namespace

Address Address::v4(const std::array<std::uint8_t, 4>& octets) noexcept {
  Address out;
  std::copy(kMapped.begin(), kMapped.end(), out.bytes.begin());
  std::copy(octets.begin(), octets.end(), out.bytes.begin() + 12);
  return out;
}

std::optional<Address> Address::parse(std::string_view text) {
  char buffer[INET6_ADDRSTRLEN + 1] = {};
  if (text.empty() || text.size() >= sizeof buffer || text.find('\0') != std::string_view::npos) return std::nullopt;
  std::memcpy(buffer, text.data(), text.size());
  std::array<std::uint8_t, 4> octets{};
  if (inet_pton(AF_INET, buffer, octets.data()) == 1) return v4(octets);
  Address out;
  if (inet_pton(AF_INET6, buffer, out.bytes.data()) == 1) return out;
  return std::nullopt;
}

bool Address::is_v4() const noexcept { return std::equal(kMapped.begin(), kMapped.end(), bytes.begin()); }

ClientKey Address::key() const noexcept {
  ClientKey out;
  if (is_v4()) {
    out.bytes[0] = 4;
    std::copy_n(bytes.begin() + 12, 4, out.bytes.begin() + 1);
  } else {
    out.bytes[0] = 6;
    std::copy_n(bytes.begin(), 8, out.bytes.begin() + 1);
  }
  return out;
}

std::optional<AddressBlock> AddressBlock::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto base = Address::parse(text.substr(0, slash));
  if (!base) return std::nullopt;
  const bool dotted = text.substr(0, slash).find(':') == std::string_view::npos;
  AddressBlock out{*base, 128};
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    unsigned bits = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc{} || end != digits.data() + digits.size() || digits.size() > 3 ||
        bits > (dotted ? 32u : 128u))
      return std::nullopt;
    out.prefix = dotted ? bits + 96 : bits;
  }
  for (unsigned bit = out.prefix; bit < 128; ++bit)
    if ((out.base.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0) return std::nullopt;
  return out;
}

bool AddressBlock::contains(const Address& address) const noexcept {
  const unsigned whole = prefix / 8, rest = prefix % 8;
  if (!std::equal(base.bytes.begin(), base.bytes.begin() + whole, address.bytes.begin())) return false;
  return rest == 0 || (base.bytes[whole] ^ address.bytes[whole]) >> (8 - rest) == 0;
}

bool ProxySettings::trusts(const Address& socket) const noexcept {
  return trust != Trust::none &&
         std::any_of(from.begin(), from.end(), [&](const AddressBlock& b) { return b.contains(socket); });
}

Address client_of(const RequestHead& head, const Address& socket, const ProxySettings& proxy) {
  if (!proxy.trusts(socket)) return socket;
  std::optional<Address> said;
  if (proxy.trust == ProxySettings::Trust::forwarded_for) {
    said = forwarded_for(head, proxy.hops);
  } else if (proxy.trust == ProxySettings::Trust::cloudflare) {
    if (const auto value = head.single("cf-connecting-ip")) said = Address::parse(*value);
  }
  return said.value_or(socket);
}

}  // namespace tandem::net
