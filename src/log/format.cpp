#include "log/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tandem::log {
namespace {

constexpr std::size_t kMaxString = 1024;

// The length of the UTF-8 sequence at the front of s, 0 where there is none (RFC 3629).
std::size_t sequence_length(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = at(0);
  std::size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (n == 0 || n > s.size()) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  if ((c == 0xe0 && at(1) < 0xa0) || (c == 0xed && at(1) > 0x9f) || (c == 0xf0 && at(1) < 0x90) ||
      (c == 0xf4 && at(1) > 0x8f))
    return 0;
  return n;
}

void append_escaped(std::string& out, std::string_view s, bool escape_quotes) {
  const std::size_t limit = out.size() + kMaxString;
  while (!s.empty()) {
    if (out.size() >= limit) {
      out += "...";
      return;
    }
    const char c = s.front();
    const std::size_t n = sequence_length(s);
    if (n == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD
      s.remove_prefix(1);
      continue;
    }
    if (escape_quotes && (c == '"' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == 127) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : code;
    } else {
      out.append(s.substr(0, n));
    }
    s.remove_prefix(n);
  }
}

void append_number(std::string& out, double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", v);
  out += std::isfinite(v) ? text : "null";
}

void append_value(std::string& out, const Field& field, bool json) {
  if (const auto* n = std::get_if<std::int64_t>(&field.value)) {
    out += std::to_string(*n);
  } else if (const auto* d = std::get_if<double>(&field.value)) {
    append_number(out, *d);
  } else if (const auto* b = std::get_if<bool>(&field.value)) {
    out += *b ? "true" : "false";
  } else {
    const std::string_view s = std::get<std::string_view>(field.value);
    const bool quote = json || s.empty() || s.find_first_of(" \"=\\") != std::string_view::npos;
    if (quote) out += '"';
    append_escaped(out, s, quote);
    if (quote) out += '"';
  }
}

}  // namespace

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warn: return "warn";
    case Level::error: break;
  }
  return "error";
}

std::string format_text(std::string_view message, Fields fields) {
  std::string out;
  append_escaped(out, message, false);
  for (const Field& field : fields) {
    if (out.size() > kMaxLine) break;
    out += ' ';
    out += field.key;
    out += '=';
    append_value(out, field, false);
  }
  return out;
}

std::string format_json(timespec at, Level level, std::string_view message, Fields fields) {
  std::string out =
      "{\"time\":\"" + format_time(at) + "\",\"level\":\"" + std::string(to_string(level)) + "\",\"message\":\"";
  append_escaped(out, message, true);
  out += '"';
  for (const Field& field : fields) {
    if (out.size() > kMaxLine) break;
    out += ",\"";
    append_escaped(out, field.key, true);
    out += "\":";
    append_value(out, field, true);
  }
  return out + "}";
}

std::string format_time(timespec at) {
  tm parts{};
  gmtime_r(&at.tv_sec, &parts);
  char text[40], fraction[16];
  const std::size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(fraction, sizeof fraction, ".%03ldZ", std::clamp(at.tv_nsec / 1000000, 0L, 999L));
  return std::string(text, n) + fraction;
}

}  // namespace tandem::log
