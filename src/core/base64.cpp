#include "tandem/core/base64.hpp"

#include <array>

namespace tandem {
namespace {

constexpr std::string_view kStandard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> table_of(std::string_view alphabet) {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
  return table;
}
constexpr auto kStandardTable = table_of(kStandard);
constexpr auto kUrlTable = table_of(kUrl);

std::string encode(ByteView data, std::string_view alphabet, bool pad) {
  std::string out;
  out.reserve((data.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < data.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, data.size() - i);
    std::uint32_t bits = static_cast<std::uint32_t>(data[i]) << 16;
    if (n > 1) bits |= static_cast<std::uint32_t>(data[i + 1]) << 8;
    if (n > 2) bits |= data[i + 2];
    out += alphabet[bits >> 18];
    out += alphabet[bits >> 12 & 63];
    if (n > 1) out += alphabet[bits >> 6 & 63];
    if (n > 2) out += alphabet[bits & 63];
    if (pad) out.append(3 - n, '=');
  }
  return out;
}

// `text` without its padding.
Result<Bytes> decode(std::string_view text, const std::array<std::int8_t, 256>& table) {
  if (text.size() % 4 == 1) return make_error_code(Error::bad_base64);
  Bytes out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    const std::int8_t value = table[static_cast<unsigned char>(c)];
    if (value < 0) return make_error_code(Error::bad_base64);
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out.push_back(static_cast<std::uint8_t>(bits >> held));
      bits &= (1u << held) - 1;
    }
  }
  if (bits != 0) return make_error_code(Error::bad_base64);  // two spellings of one value would make secrets ambiguous
  return out;
}

}  // namespace

std::string base64_encode(ByteView data) { return encode(data, kStandard, true); }

Result<Bytes> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return make_error_code(Error::bad_base64);
  std::size_t n = text.size();
  for (int i = 0; i < 2 && n > 0 && text[n - 1] == '='; ++i) --n;
  if (text.size() - n == 2 && n % 4 != 2) return make_error_code(Error::bad_base64);
  return decode(text.substr(0, n), kStandardTable);
}

std::string base64url_encode(ByteView data) { return encode(data, kUrl, false); }

Result<Bytes> base64url_decode(std::string_view text) {
  std::size_t n = text.size();
  while (n > 0 && text[n - 1] == '=') --n;
  const std::size_t padding = text.size() - n;
  if (padding != 0 && (padding > 2 || text.size() % 4 != 0)) return make_error_code(Error::bad_base64);
  return decode(text.substr(0, n), kUrlTable);
}

std::string hex_encode(ByteView data) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(data.size() * 2);
  for (const std::uint8_t b : data) {
    out += digits[b >> 4];
    out += digits[b & 15];
  }
  return out;
}

Result<Bytes> hex_decode(std::string_view text) {
  if (text.size() % 2 != 0) return make_error_code(Error::malformed);
  Bytes out;
  out.reserve(text.size() / 2);
  unsigned value = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    unsigned d = 0;
    if (c >= '0' && c <= '9')
      d = static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f')
      d = static_cast<unsigned>(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      d = static_cast<unsigned>(c - 'A' + 10);
    else
      return make_error_code(Error::malformed);
    value = value << 4 | d;
    if (i % 2 == 1) {
      out.push_back(static_cast<std::uint8_t>(value));
      value = 0;
    }
  }
  return out;
}

}  // namespace tandem
