#include "config/read_value.hpp"

#include "tandem/config/units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::config {
namespace {

std::string excerpt(const json& v) {
  if (v.is_object()) return "an object";
  if (v.is_array()) return v.empty() ? "an empty list" : "a list";
  std::string text = v.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 56) + "...";
}

ValueFault unlike(const json& v, const Rule& rule, std::string suffix = {}) {
  return {std::move(suffix), "expected " + expectation(rule) + ", found " + excerpt(v)};
}

ValueFault not_above_zero(const json& v) { return {"", "must be above zero, found " + excerpt(v)}; }

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return s;
}

Fault check_authority(const std::string& text) {
  if (text.ends_with(":443")) return ValueFault{"", "write it without \":443\", found \"" + text + "\""};
  if (const auto name = Authority::parse(text)) {
    if (name->kind() != Authority::Kind::ipv6) return std::nullopt;
    // Maps, certificates and origins are compared byte for byte: one address must have one spelling (RFC 5952).
    const auto ip = IpAddress::parse(name->host());
    const std::string canonical = ip ? ip->text() : name->host();
    if (canonical == name->host()) return std::nullopt;
    return ValueFault{"", "an address in its shortest form, " + canonical + ", found \"" + text + "\""};
  }
  std::string hint =
      "write the bare name clients use, lowercase, without scheme, path or final dot, such as \"relay1.example.com\"";
  std::string simple = lower(text);
  if (const auto scheme = simple.find("://"); scheme != std::string::npos) simple = simple.substr(scheme + 3);
  simple = simple.substr(0, simple.find('/'));
  while (simple.ends_with('.')) simple.pop_back();
  if (simple.ends_with(":443")) simple.resize(simple.size() - 4);
  if (simple != text && Authority::parse(simple)) hint = "did you mean \"" + simple + "\"?";
  return ValueFault{"", "not a bare host name: " + excerpt(text) + "; " + hint};
}

// https anywhere, http on loopback, file for a local path (2-sharding 2.3).
Fault check_url(const std::string& text) {
  const std::string found = ", found " + excerpt(text);
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 127; });
  if (!plain || text.find('#') != std::string::npos) return ValueFault{"", "a URL without spaces or fragment" + found};
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string::npos)
    return ValueFault{"", "expected a whole URL, such as \"https://resolver.example.com/shardmap.json\"" + found};
  const std::string scheme = lower(text.substr(0, scheme_end)), rest = text.substr(scheme_end + 3);
  const std::string authority = rest.substr(0, rest.find_first_of("/?"));
  if (scheme == "file") {
    if ((authority.empty() || authority == "localhost") && rest.size() > authority.size() + 1) return std::nullopt;
    return ValueFault{"", "a file URL names an absolute path, such as \"file:///srv/map/shardmap.json\"" + found};
  }
  if (authority.find('@') != std::string::npos) return ValueFault{"", "a URL without user name and password" + found};
  const auto host = Authority::parse(lower(authority));
  if (scheme != "https" && scheme != "http")
    return ValueFault{"", "the scheme is https, or http on loopback, or file" + found};
  if (!host) return ValueFault{"", "no valid host in the URL" + found};
  const auto ip = IpAddress::parse(host->host());
  if (scheme == "http" && host->host() != "localhost" && !(ip && ip->is_loopback())) {
    return ValueFault{"", "http is for loopback alone; use https" + found};
  }
  return std::nullopt;
}

}  // namespace

Fault read_value(const json& v, const Reading& r, std::string& out) {
  if (!v.is_string()) return unlike(v, r.rule);
  out = v.get<std::string>();
  if (out.empty()) return ValueFault{"", "expected " + expectation(r.rule) + ", found an empty string"};
  if (std::any_of(out.begin(), out.end(), [](unsigned char c) { return c < ' ' || c == 127; })) {
    return ValueFault{"", "a control character in " + excerpt(v)};
  }
  if (r.rule.type == Type::authority) return check_authority(out);
  if (r.rule.type == Type::url) return check_url(out);
  if (r.rule.type == Type::path && out.front() != '/' && !r.base_dir.empty()) out = r.base_dir + "/" + out;
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, bool& out) {
  if (!v.is_boolean()) return unlike(v, r.rule);
  out = v.get<bool>();
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, std::uint32_t& out) {
  if (!v.is_number()) return unlike(v, r.rule);
  if (v.is_number_float())
    return ValueFault{"", "must be a whole number, written without fraction or exponent, found " + excerpt(v)};
  if (!v.is_number_unsigned() || v.get<std::uint64_t>() == 0) return not_above_zero(v);
  if (v.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
    return ValueFault{"", "at most 4294967295, found " + excerpt(v)};
  out = v.get<std::uint32_t>();
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, double& out) {
  if (!v.is_number()) return unlike(v, r.rule);
  out = v.get<double>();
  if (r.rule.type == Type::percent) {
    if (!(out >= 0 && out <= 100)) return ValueFault{"", "must be a percentage from 0 to 100, found " + excerpt(v)};
    return std::nullopt;
  }
  if (!(out > 0)) return not_above_zero(v);
  if (out < kMinRate || out > kMaxRate) return ValueFault{"", "must be from 0.000001 to 1000000, found " + excerpt(v)};
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, Duration& out) {
  if (!v.is_string()) return unlike(v, r.rule);
  const auto d = parse_duration(v.get_ref<const std::string&>());
  if (!d && d.error() == make_error_code(Error::bad_value))
    return ValueFault{"", "at most \"36500d\", found " + excerpt(v)};
  if (!d) return unlike(v, r.rule);
  if (d->count() == 0 && !r.rule.zero_allowed) return not_above_zero(v);
  out = *d;
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, ByteCount& out) {
  if (!v.is_string()) return unlike(v, r.rule);
  const auto n = parse_size(v.get_ref<const std::string&>());
  if (!n && n.error() == make_error_code(Error::bad_value))
    return ValueFault{"", "at most \"1048576TiB\", found " + excerpt(v)};
  if (!n) return unlike(v, r.rule);
  if (n->value == 0) return not_above_zero(v);
  if (*n < r.rule.least || *n > r.rule.most) {
    return ValueFault{
        "", "must be from " + format_size(r.rule.least) + " to " + format_size(r.rule.most) + ", found " + excerpt(v)};
  }
  out = *n;
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, ListenAddress& out) {
  if (!v.is_string()) return unlike(v, r.rule);
  const auto address = ListenAddress::parse(v.get_ref<const std::string&>());
  if (!address)
    return ValueFault{
        "", "not an address and port: " + excerpt(v) +
                "; write \"0.0.0.0:443\", \"[::]:443\" or another literal address, and a port from 1 to 65535"};
  out = *address;
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, std::vector<ListenAddress>& out) {
  if (!v.is_array() || v.empty()) return unlike(v, r.rule);
  out.clear();
  for (std::size_t i = 0; i < v.size(); ++i) {
    ListenAddress address;
    const Rule one{.type = Type::address};
    if (Fault fault = read_value(v[i], Reading{one, r.base_dir}, address)) {
      fault->suffix = "[" + std::to_string(i) + "]";
      return fault;
    }
    out.push_back(address);
  }
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, std::vector<Cidr>& out) {
  if (!v.is_array()) return unlike(v, r.rule);
  out.clear();
  for (std::size_t i = 0; i < v.size(); ++i) {
    const auto network = v[i].is_string() ? Cidr::parse(v[i].get_ref<const std::string&>())
                                          : Result<Cidr>(make_error_code(Error::bad_value));
    if (!network)
      return ValueFault{"[" + std::to_string(i) + "]", "not an address range: " + excerpt(v[i]) +
                                                           "; write \"10.0.0.0/8\", \"2001:db8::/32\" or an address"};
    out.push_back(*network);
  }
  return std::nullopt;
}

Fault read_value(const json& v, const Reading& r, EgressBudget& out) {
  const Rule size{.type = Type::size};
  if (!v.is_object()) {
    if (!v.is_string()) return unlike(v, r.rule);
    return read_value(v, Reading{size, r.base_dir}, out.limit);
  }
  for (const auto& [key, value] : v.items()) {
    if (key == "hard") {
      if (!value.is_boolean()) return unlike(value, Rule{.type = Type::flag}, ".hard");
      out.hard = value.get<bool>();
    } else if (key == "limit") {
      if (Fault fault = read_value(value, Reading{size, r.base_dir}, out.limit)) {
        fault->suffix = ".limit";
        return fault;
      }
    } else {
      return ValueFault{"." + key, "unknown key; the valid ones are limit and hard"};
    }
  }
  if (!v.contains("limit")) return ValueFault{"", "limit is missing: write {\"limit\": \"20TiB\", \"hard\": true}"};
  return std::nullopt;
}

Fault read_choice(const json& v, const Reading& r, std::size_t& index) {
  const auto found = v.is_string()
                         ? std::find(r.rule.choices.begin(), r.rule.choices.end(), v.get_ref<const std::string&>())
                         : r.rule.choices.end();
  if (found == r.rule.choices.end()) return unlike(v, r.rule);
  index = static_cast<std::size_t>(found - r.rule.choices.begin());
  return std::nullopt;
}

json show_value(const std::string& v, const Rule&) { return v; }
json show_value(bool v, const Rule&) { return v; }
json show_value(std::uint32_t v, const Rule&) { return v; }
json show_value(double v, const Rule&) {
  // Whole numbers as people write them: 10, not 10.0.
  if (v == std::floor(v) && v < 1e9) return static_cast<std::int64_t>(v);
  return v;
}
json show_value(Duration v, const Rule&) { return format_duration(v); }
json show_value(ByteCount v, const Rule&) { return format_size(v); }
json show_value(const ListenAddress& v, const Rule&) { return v.text(); }

json show_value(const std::vector<ListenAddress>& v, const Rule&) {
  json out = json::array();
  for (const ListenAddress& a : v) out.push_back(a.text());
  return out;
}

json show_value(const std::vector<Cidr>& v, const Rule&) {
  json out = json::array();
  for (const Cidr& c : v) out.push_back(c.text());
  return out;
}

json show_value(const EgressBudget& v, const Rule&) {
  if (!v.hard) return format_size(v.limit);
  return {{"limit", format_size(v.limit)}, {"hard", true}};
}

}  // namespace tandem::config
