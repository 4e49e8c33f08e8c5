#include "tandem/core/ids.hpp"

#include "tandem/core/base64.hpp"
#include "tandem/core/crypto.hpp"

namespace tandem {
namespace {

constexpr int digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<RoomName> RoomName::parse(std::string_view hex) noexcept {
  if (hex.size() != 64) return std::nullopt;
  std::array<std::uint8_t, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return RoomName(digest);
}

std::string RoomName::hex() const { return hex_encode(digest_); }

std::string RoomName::tag() const {
  const Sha256 hash = sha256(bytes_of(hex()));
  return hex_encode(ByteView(hash).first(4));
}

}  // namespace tandem
