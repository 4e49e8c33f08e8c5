// Base64, the standard alphabet with padding, decoded strictly (1-wire 1.1); and the URL alphabet without, for pairing
// URLs.
#pragma once

#include "tandem/core/error.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

[[nodiscard]] inline ByteView bytes_of(std::string_view s) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

[[nodiscard]] std::string base64_encode(ByteView data);
// Refuses white space, missing or extra padding, the URL alphabet and non-zero bits behind the end. Error: bad_base64.
[[nodiscard]] Result<Bytes> base64_decode(std::string_view text);

[[nodiscard]] std::string base64url_encode(ByteView data);            // without padding
[[nodiscard]] Result<Bytes> base64url_decode(std::string_view text);  // padding tolerated; Error: bad_base64

[[nodiscard]] std::string hex_encode(ByteView data);            // lowercase
[[nodiscard]] Result<Bytes> hex_decode(std::string_view text);  // Error: malformed

}  // namespace tandem
