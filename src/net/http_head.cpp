#include "tandem/net/http_head.hpp"

#include <algorithm>
#include <charconv>

namespace tandem::net {
namespace {

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

// RFC 9110 5.6.2
constexpr bool is_token_char(char c) noexcept {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view s) noexcept { return !s.empty() && std::all_of(s.begin(), s.end(), is_token_char); }

// RFC 9110 5.5: visible characters, blanks and bytes above ASCII.
bool is_field_value(std::string_view s) noexcept {
  return std::all_of(s.begin(), s.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x21 ? u != 0x7f : is_blank(c);
  });
}

std::string_view trim_value(std::string_view s) noexcept {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

// Calls f for each element of a comma-separated list, trimmed, empty ones left out.
template <class F>
void each_element(std::string_view list, F&& f) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (const std::string_view element = trim_value(list.substr(0, comma)); !element.empty()) f(element);
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

// The path of an origin-form or absolute-form target; nothing where it is neither, nor `*` or a CONNECT's authority.
std::optional<std::string_view> path_of(std::string_view method, std::string_view target) {
  const bool visible =
      !target.empty() && std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!visible || target.find('#') != std::string_view::npos) return std::nullopt;
  if (target == "*") return method == "OPTIONS" ? std::optional(target) : std::nullopt;
  if (method == "CONNECT") return target;
  if (target.front() != '/') {
    std::size_t scheme = 0;
    for (const std::string_view known : {"http://", "https://", "ws://", "wss://"})
      if (target.size() > known.size() && equals_ignoring_case(target.substr(0, known.size()), known))
        scheme = known.size();
    if (scheme == 0) return std::nullopt;
    target.remove_prefix(scheme);
    const std::size_t slash = target.find_first_of("/?");
    if (slash == 0) return std::nullopt;  // no authority
    if (slash == std::string_view::npos || target[slash] == '?') return "/";
    target.remove_prefix(slash);
  }
  return target.substr(0, target.find('?'));
}

// method SP target SP HTTP/1.x
bool parse_request_line(std::string_view line, RequestHead& out) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return false;
  out.method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(out.method)) return false;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  out.minor_version = version.back() - '0';
  const auto path = path_of(out.method, line.substr(first + 1, last - first - 1));
  if (!path) return false;
  out.path = *path;
  return true;
}

bool parse_field(std::string_view line, RequestHead::Field& out) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  out.name = line.substr(0, colon);  // no trimming: a fold or a space before the colon is no token
  out.value = trim_value(line.substr(colon + 1));
  return is_token(out.name) && is_field_value(out.value);
}

// Where the body ends; 0 where that is clear, else the status that refuses it.
std::uint16_t parse_framing(RequestHead& head) {
  const std::size_t lengths = head.count("content-length"), codings = head.count("transfer-encoding");
  if (lengths > 1 || codings > 1 || (lengths != 0 && codings != 0)) return 400;
  if (codings == 1) {
    if (head.minor_version == 0) return 400;
    if (!equals_ignoring_case(*head.single("transfer-encoding"), "chunked")) return 501;
    head.chunked = true;
  }
  if (lengths == 1) {
    const std::string_view text = *head.single("content-length");
    if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return 400;
    std::uint64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return 400;
    head.content_length = value;
  }
  return 0;
}

bool parse_host(const RequestHead& head) {
  const std::size_t hosts = head.count("host");
  if (hosts == 0) return head.minor_version == 0;
  if (hosts > 1) return false;
  const std::string_view host =
      *head.single("host");  // what it says decides nothing here (1-wire 1.1), only that it is one
  return host.find_first_of(" \t,/?#@\\") == std::string_view::npos;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view lower_b) noexcept {
  return a.size() == lower_b.size() &&
         std::equal(a.begin(), a.end(), lower_b.begin(), [](char x, char y) { return lower(x) == y; });
}

std::variant<HeadScanner::NeedMore, HeadScanner::Found, HeadScanner::Fault> HeadScanner::scan(
    std::string_view buffer) noexcept {
  const std::size_t end = std::min(buffer.size(), kMaxHeadBytes);
  for (; at_ < end; ++at_) {
    const char c = buffer[at_];
    if (after_cr_ != (c == '\n') || c == '\0') return Fault{400};
    after_cr_ = c == '\r';
    if (c != '\n') continue;
    const bool empty = at_ - line_start_ == 1;
    line_start_ = at_ + 1;
    if (empty && lines_ == 0) return Fault{400};
    if (empty) return Found{at_ + 1};
    if (++lines_ > kMaxHeaderLines + 1) return Fault{431};
  }
  if (at_ >= kMaxHeadBytes) return Fault{431};
  return NeedMore{};
}

std::size_t RequestHead::count(std::string_view lower_name) const noexcept {
  return static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(field_count),
                    [&](const Field& f) { return equals_ignoring_case(f.name, lower_name); }));
}

std::optional<std::string_view> RequestHead::single(std::string_view lower_name) const noexcept {
  std::optional<std::string_view> out;
  for (std::size_t i = 0; i < field_count; ++i) {
    if (!equals_ignoring_case(fields[i].name, lower_name)) continue;
    if (out) return std::nullopt;
    out = fields[i].value;
  }
  return out;
}

bool RequestHead::has_token(std::string_view lower_name, std::string_view lower_token) const noexcept {
  bool found = false;
  for (std::size_t i = 0; i < field_count; ++i) {
    if (!equals_ignoring_case(fields[i].name, lower_name)) continue;
    each_element(fields[i].value, [&](std::string_view e) { found = found || equals_ignoring_case(e, lower_token); });
  }
  return found;
}

std::variant<std::uint16_t, RequestHead> parse_head(std::string_view head) {
  RequestHead out;
  std::size_t end = head.find("\r\n");
  if (end == std::string_view::npos || !parse_request_line(head.substr(0, end), out)) return std::uint16_t{400};
  head.remove_prefix(end + 2);
  while ((end = head.find("\r\n")) != 0) {
    if (end == std::string_view::npos) return std::uint16_t{400};
    if (out.field_count == kMaxHeaderLines) return std::uint16_t{431};
    if (!parse_field(head.substr(0, end), out.fields[out.field_count++])) return std::uint16_t{400};
    head.remove_prefix(end + 2);
  }
  if (!parse_host(out)) return std::uint16_t{400};
  if (const std::uint16_t refused = parse_framing(out); refused != 0) return refused;

  out.keep_alive = out.minor_version == 1 && !out.has_token("connection", "close");
  if (out.count("expect") != 0) {
    const auto expect = out.single("expect");
    if (!expect || !equals_ignoring_case(*expect, "100-continue")) return std::uint16_t{417};
    out.expects_continue = out.minor_version == 1;
  }
  out.upgrade = out.method == "GET" && out.has_token("upgrade", "websocket");
  if (out.upgrade && (out.minor_version == 0 || out.has_body())) return std::uint16_t{400};
  return out;
}

}  // namespace tandem::net
