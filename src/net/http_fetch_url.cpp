#include "tandem/net/http_fetch.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <boost/asio/ip/address.hpp>

namespace tandem::net {

namespace {

bool is_loopback_host(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code ec;
  const auto address = boost::asio::ip::make_address(host, ec);
  return !ec && address.is_loopback();
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view in) {
  std::string out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != '%') {
      out.push_back(in[i]);
      continue;
    }
    if (i + 2 >= in.size() || hex_digit(in[i + 1]) < 0 || hex_digit(in[i + 2]) < 0) return std::nullopt;
    out.push_back(static_cast<char>(hex_digit(in[i + 1]) * 16 + hex_digit(in[i + 2])));
    i += 2;
  }
  if (out.find('\0') != std::string::npos) return std::nullopt;
  return out;
}

std::variant<FetchUrl, std::string> parse_file(std::string_view rest) {
  if (rest.starts_with("localhost/")) rest.remove_prefix(9);
  if (!rest.starts_with('/')) return "a file URL names an absolute path of this machine: file:///path";
  auto path = percent_decoded(rest);
  if (!path) return "a bad %-escape in the path";
  FetchUrl url;
  url.scheme = FetchUrl::Scheme::file;
  url.port = 0;
  url.target = std::move(*path);
  return url;
}

// Splits "host[:port]" into url; an empty answer means it is in form.
std::string parse_authority(std::string_view authority, FetchUrl& url) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    if (end == std::string_view::npos) return "a bracket is missing behind the address";
    url.host = authority.substr(1, end - 1);
    boost::system::error_code ec;
    static_cast<void>(boost::asio::ip::make_address_v6(url.host, ec));
    if (ec) return "no IPv6 address between the brackets";
    port = authority.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return "something stands between the address and the path";
  } else {
    const auto colon = authority.find(':');
    url.host = authority.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view{} : authority.substr(colon);
    const auto in_form = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
             c == '_';
    };
    if (url.host.empty() || url.host.size() > 255 || !std::all_of(url.host.begin(), url.host.end(), in_form))
      return "the host is out of form";
    std::transform(url.host.begin(), url.host.end(), url.host.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  }
  if (port.size() > 1) {
    port.remove_prefix(1);
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (ec != std::errc{} || end != port.data() + port.size() || url.port == 0)
      return "the port is not between 1 and 65535";
  }
  return {};
}

}  // namespace

std::string_view label(FetchCause cause) noexcept {
  static constexpr std::array<std::string_view, kFetchCauseCount> kLabels = {
      "dns", "timeout", "connect", "tls", "http_4xx", "http_5xx", "http_other", "parse", "other"};
  return kLabels[static_cast<std::size_t>(cause)];
}

std::optional<std::string_view> FetchAnswer::header(std::string_view lower_case_name) const noexcept {
  for (const auto& [name, value] : headers)
    if (name == lower_case_name) return value;
  return std::nullopt;
}

std::variant<FetchUrl, std::string> parse_fetch_url(std::string_view text) {
  for (const char c : text)
    if (c <= ' ' || c >= 0x7f) return "a URL is ASCII without spaces";
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return "a URL begins with https://, http:// or file://";
  const std::string_view scheme = text.substr(0, scheme_end);
  std::string_view rest = text.substr(scheme_end + 3);
  rest = rest.substr(0, rest.find('#'));
  if (scheme == "file") return parse_file(rest);
  FetchUrl url;
  if (scheme == "http") {
    url.scheme = FetchUrl::Scheme::http;
    url.port = 80;
  } else if (scheme != "https") {
    return "the scheme is none of https, http and file";
  }
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  if (authority.find('@') != std::string_view::npos) return "user names and passwords are not sent";
  if (auto fault = parse_authority(authority, url); !fault.empty()) return fault;
  if (url.scheme == FetchUrl::Scheme::http && !is_loopback_host(url.host))
    return "http goes to loopback addresses alone; use https";
  url.authority = authority;
  url.target = rest.substr(authority.size());
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

}  // namespace tandem::net
