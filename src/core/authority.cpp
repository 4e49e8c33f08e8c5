#include "tandem/core/authority.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace tandem {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool parse_port(std::string_view text, std::optional<std::uint16_t>& port) {
  if (text.empty() || text.size() > 5 || text[0] == '0' || !std::all_of(text.begin(), text.end(), is_digit))
    return false;
  unsigned value = 0;
  for (const char c : text) value = value * 10 + static_cast<unsigned>(c - '0');
  if (value > 65535) return false;
  port = static_cast<std::uint16_t>(value);
  return true;
}

bool is_ipv4(std::string_view text) {
  int parts = 0;
  for (std::size_t i = 0; i <= text.size();) {
    const std::size_t dot = std::min(text.find('.', i), text.size());
    const std::string_view part = text.substr(i, dot - i);
    if (part.empty() || part.size() > 3 || !std::all_of(part.begin(), part.end(), is_digit)) return false;
    if (part.size() > 1 && part[0] == '0') return false;
    unsigned value = 0;
    for (const char c : part) value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > 255) return false;
    ++parts;
    i = dot + 1;
  }
  return parts == 4;
}

// Groups of hexadecimal digits with at most one "::", optionally an IPv4 tail (RFC 4291 2.2), lowercase.
bool is_ipv6(std::string_view text) {
  if (text.size() < 2 || text.size() > 45) return false;
  const std::size_t gap = text.find("::");
  if (gap != std::string_view::npos && text.find("::", gap + 1) != std::string_view::npos) return false;
  const auto count = [](std::string_view part, bool tail, int& groups) {
    if (part.empty()) return true;
    for (std::size_t i = 0; i <= part.size();) {
      const std::size_t colon = std::min(part.find(':', i), part.size());
      const std::string_view group = part.substr(i, colon - i);
      if (tail && colon == part.size() && group.find('.') != std::string_view::npos) {
        if (!is_ipv4(group)) return false;
        groups += 2;
        return true;
      }
      const auto hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
      if (group.empty() || group.size() > 4 || !std::all_of(group.begin(), group.end(), hex)) return false;
      ++groups;
      i = colon + 1;
    }
    return true;
  };
  int groups = 0;
  if (gap == std::string_view::npos) return count(text, true, groups) && groups == 8;
  return count(text.substr(0, gap), false, groups) && count(text.substr(gap + 2), true, groups) && groups < 8;
}

bool is_name(std::string_view text) {
  if (text.size() > 253) return false;
  bool numeric = true;
  for (std::size_t i = 0; i <= text.size();) {
    const std::size_t dot = std::min(text.find('.', i), text.size());
    const std::string_view label = text.substr(i, dot - i);
    const auto ok = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_'; };
    if (label.empty() || label.size() > 63 || !std::all_of(label.begin(), label.end(), ok)) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    numeric = std::all_of(label.begin(), label.end(), is_digit);
    i = dot + 1;
  }
  return !numeric;  // a last label of digits would read as an address: "1.2.3", "0127.0.0.1"
}

}  // namespace

Result<Authority> Authority::parse(std::string_view text) {
  Authority out;
  std::string_view host = text;
  if (text.empty() || text.size() > 255) return make_error_code(Error::bad_authority);
  if (text[0] == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return make_error_code(Error::bad_authority);
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && (rest[0] != ':' || !parse_port(rest.substr(1), out.port_)))
      return make_error_code(Error::bad_authority);
    if (!is_ipv6(host)) return make_error_code(Error::bad_authority);
    out.kind_ = Kind::ipv6;
  } else {
    const std::size_t colon = text.find(':');
    host = text.substr(0, colon);
    if (colon != std::string_view::npos && !parse_port(text.substr(colon + 1), out.port_))
      return make_error_code(Error::bad_authority);
    if (is_ipv4(host))
      out.kind_ = Kind::ipv4;
    else if (!is_name(host))
      return make_error_code(Error::bad_authority);
  }
  out.text_ = text;
  out.host_ = host;
  return out;
}

bool is_localhost(std::string_view host) noexcept { return host == "localhost" || host.ends_with(".localhost"); }

bool Authority::owns_nothing() const noexcept {
  return kind_ == Kind::name && (host_ == "invalid" || host_.ends_with(".invalid"));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace tandem
