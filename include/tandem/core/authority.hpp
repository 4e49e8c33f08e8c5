// A bare authority: a lowercase host name or address literal, with an optional port (2-sharding 2.2, 2.6).
#pragma once

#include "tandem/core/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

class Authority {
 public:
  enum class Kind : std::uint8_t { name, ipv4, ipv6 };

  // No scheme, path, userinfo, query, fragment or space, lowercase ASCII, no trailing dot, IPv6 in brackets. At most
  // 255 characters, labels at most 63. Error: bad_authority.
  [[nodiscard]] static Result<Authority> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }  // byte for byte as given: what maps compare
  [[nodiscard]] const std::string& host() const noexcept {
    return host_;
  }  // without port and brackets: what certificates name
  [[nodiscard]] std::optional<std::uint16_t> port() const noexcept { return port_; }
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool owns_nothing() const noexcept;                        // a name under .invalid
  [[nodiscard]] std::string origin() const { return "https://" + text_; }  // 1-wire 1.1

  friend bool operator==(const Authority& a, const Authority& b) noexcept { return a.text_ == b.text_; }

 private:
  std::string text_, host_;
  std::optional<std::uint16_t> port_;
  Kind kind_ = Kind::name;
};

// `localhost` and names below it are this machine also where no resolver knows them (RFC 6761, 6.3): a minimal system
// has no /etc/hosts. `host` in lower case, as Authority has it.
[[nodiscard]] bool is_localhost(std::string_view host) noexcept;

// The candidate closest to `wanted` by edit distance, for "did you mean"; empty where none is near (more than a third
// away).
template <class Range>
[[nodiscard]] std::string nearest(std::string_view wanted, const Range& candidates);
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string nearest(std::string_view wanted, const Range& candidates) {
  std::string best;
  std::size_t best_distance = wanted.size() / 3 + 2;
  for (const auto& candidate : candidates) {
    const std::size_t d = edit_distance(wanted, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tandem
