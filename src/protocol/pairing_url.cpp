#include "tandem/protocol/pairing_url.hpp"

#include "tandem/core/authority.hpp"
#include "tandem/protocol/derivation.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace tandem::protocol {
namespace {

constexpr std::string_view kPrefix = "iterm2://pair?";
constexpr std::string_view kHttps = "https://";

bool is_unreserved(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string percent_encode(std::string_view text, std::string_view also_plain) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char ch : text) {
    const auto c = static_cast<unsigned char>(ch);
    if (is_unreserved(c) || also_plain.find(ch) != std::string_view::npos) {
      out += ch;
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return out;
}

bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const std::size_t n = c < 0x80                ? 1
                          : c >= 0xC2 && c < 0xE0 ? 2
                          : c >= 0xE0 && c < 0xF0 ? 3
                          : c >= 0xF0 && c < 0xF5 ? 4
                                                  : 0;
    if (n == 0 || i + n > s.size()) return false;
    for (std::size_t k = 1; k < n; ++k) {
      if ((static_cast<unsigned char>(s[i + k]) & 0xC0) != 0x80) return false;
    }
    if (n > 2) {
      const auto d = static_cast<unsigned char>(s[i + 1]);
      const bool overlong = (c == 0xE0 && d < 0xA0) || (c == 0xF0 && d < 0x90);
      const bool surrogate_or_beyond = (c == 0xED && d > 0x9F) || (c == 0xF4 && d > 0x8F);
      if (overlong || surrogate_or_beyond) return false;
    }
    i += n;
  }
  return true;
}

bool has_no_blanks(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7F; });
}

// The authority of an https origin; nothing where it is none. A lone "/" behind it is no path.
std::optional<std::string> authority_of_origin(std::string_view origin) {
  if (!origin.starts_with(kHttps)) return std::nullopt;
  origin.remove_prefix(kHttps.size());
  if (origin.ends_with('/')) origin.remove_suffix(1);
  const auto authority = Authority::parse(origin);
  if (!authority) return std::nullopt;
  return std::string(origin);
}

bool is_map_url(std::string_view url) {
  if (!has_no_blanks(url)) return false;
  for (const std::string_view scheme : {kHttps, std::string_view("http://"), std::string_view("file:")}) {
    if (url.starts_with(scheme) && url.size() > scheme.size()) return url[scheme.size()] != '/' || scheme == "file:";
  }
  return false;
}

PairingUrlFault fault(std::string parameter, std::string_view value, std::string_view what) {
  std::string message = "pairing URL: " + parameter + " " + std::string(what);
  return {std::move(parameter), std::string(value), std::move(message)};
}

}  // namespace

RoomName PairingUrl::room() const { return room_name(rs, pid); }

std::string PairingUrl::host() const { return authority_of_origin(where).value_or(std::string()); }

std::string build_pairing_url(const PairingUrl& url) {
  std::string out(kPrefix);
  out += url.resolved ? "v=2" : "v=1";
  out.append("&proto=").append(kNoiseProtocol);
  out.append("&rs=").append(base64url_encode(url.rs));
  out.append("&pid=").append(percent_encode(url.pid, ""));
  out.append(url.resolved ? "&resolver=" : "&relay=").append(percent_encode(url.where, ":/[]@!$'()*,;"));
  return out;
}

std::variant<PairingUrl, PairingUrlFault> parse_pairing_url(std::string_view text) {
  if (!text.starts_with(kPrefix)) return fault("url", text, "is not an iterm2://pair? URL");
  std::string_view query = text.substr(kPrefix.size());
  if (const auto hash = query.find('#'); hash != std::string_view::npos) query = query.substr(0, hash);

  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    const std::string_view item = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), item.size() + 1));
    const auto equals = item.find('=');
    const std::string name(item.substr(0, equals));
    const std::string_view raw = equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    const auto value = percent_decode(raw);
    if (!value) return fault(name, raw, "is not percent-encoded correctly");
    for (const auto& [known, _] : parameters) {
      if (known == name) return fault(name, raw, "is given twice");
    }
    parameters.emplace_back(name, *value);
  }
  const auto find = [&](std::string_view name) -> const std::string* {
    for (const auto& [known, value] : parameters) {
      if (known == name) return &value;
    }
    return nullptr;
  };
  static const std::string kNone;

  PairingUrl url;
  const std::string* v = find("v");
  if (!v || (*v != "1" && *v != "2")) return fault("v", v ? *v : kNone, "is neither 1 nor 2");
  url.resolved = *v == "2";
  const std::string* proto = find("proto");
  if (!proto || *proto != kNoiseProtocol) return fault("proto", proto ? *proto : kNone, "is not the known protocol");
  const std::string* rs = find("rs");
  const auto key = rs ? base64url_decode(*rs) : Result<Bytes>(make_error_code(Error::missing_field));
  if (!key || key->size() != url.rs.size()) return fault("rs", rs ? *rs : kNone, "is not base64url of 32 bytes");
  std::copy(key->begin(), key->end(), url.rs.begin());
  const std::string* pid = find("pid");
  if (!pid || !is_utf8(*pid)) return fault("pid", pid ? *pid : kNone, "is not percent-encoded UTF-8");
  url.pid = *pid;

  const std::string* relay = find("relay");
  const std::string* resolver = find("resolver");
  if (url.resolved) {
    if (relay) return fault("relay", *relay, "does not go with v=2");
    if (!resolver || !is_map_url(*resolver))
      return fault("resolver", resolver ? *resolver : kNone, "is not an https URL");
    url.where = *resolver;
  } else {
    if (resolver) return fault("resolver", *resolver, "does not go with v=1");
    if (!relay || !authority_of_origin(*relay)) return fault("relay", relay ? *relay : kNone, "is not an https origin");
    url.where = *relay;
  }
  return url;
}

}  // namespace tandem::protocol
