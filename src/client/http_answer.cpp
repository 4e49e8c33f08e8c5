#include "tandem/client/http_answer.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tandem::client {
namespace {

constexpr std::size_t kMaxHeadBytes = 16 * 1024, kMaxBodyBytes = 1024 * 1024;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <class T>
bool read_number(std::string_view text, T& value, int base = 10) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, base);
  return !text.empty() && parsed.ec == std::errc{} && parsed.ptr == end;
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view lower_case_name) const {
  const auto found = headers_.find(lower_case_name);
  return found == headers_.end() ? std::string_view{} : std::string_view(found->second);
}

HttpAnswer::State HttpAnswer::feed(ByteView bytes) {
  if (state_ != State::incomplete) {
    buffer_.append(bytes.begin(), bytes.end());
    return state_;
  }
  buffer_.append(bytes.begin(), bytes.end());
  if (!has_head_) {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos) return state_ = buffer_.size() > kMaxHeadBytes ? State::malformed : State::incomplete;
    const std::string head = buffer_.substr(0, end);
    buffer_.erase(0, end + 4);
    state_ = parse_head(head);
    if (state_ != State::incomplete) return state_;
  }
  return state_ = parse_body();
}

HttpAnswer::State HttpAnswer::end() {
  if (state_ == State::incomplete) state_ = has_head_ && !chunked_ && !has_length_ ? State::complete : State::malformed;
  return state_;
}

HttpAnswer::State HttpAnswer::parse_head(std::string_view head) {
  const std::size_t first = std::min(head.find("\r\n"), head.size());
  const std::string_view line = head.substr(0, first);
  if (line.size() < 12 || !line.starts_with("HTTP/1.1 ") || !read_number(line.substr(9, 3), status_) || status_ < 100)
    return State::malformed;
  for (std::size_t at = first; at < head.size();) {
    at += 2;
    const std::size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string_view field = head.substr(at, end - at);
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos || colon == 0) return State::malformed;
    headers_.emplace(lower(field.substr(0, colon)), trimmed(field.substr(colon + 1)));
    at = end;
  }
  has_head_ = true;
  if (status_ == 101 || status_ == 204 || status_ == 304) return State::complete;
  chunked_ = lower(header("transfer-encoding")) == "chunked";
  if (const std::string_view length = header("content-length"); !length.empty()) {
    if (chunked_ || !read_number(length, length_) || length_ > kMaxBodyBytes) return State::malformed;
    has_length_ = true;
  }
  return State::incomplete;
}

HttpAnswer::State HttpAnswer::parse_body() {
  if (chunked_) return parse_chunks();
  const std::size_t wanted = has_length_ ? length_ - body_.size() : buffer_.size();
  const std::size_t taken = std::min(wanted, buffer_.size());
  body_.append(buffer_, 0, taken);
  buffer_.erase(0, taken);
  if (body_.size() > kMaxBodyBytes) return State::malformed;
  return has_length_ && body_.size() == length_ ? State::complete : State::incomplete;
}

HttpAnswer::State HttpAnswer::parse_chunks() {
  for (;;) {
    const std::size_t line_end = buffer_.find("\r\n");
    if (line_end == std::string::npos) return buffer_.size() > 1024 ? State::malformed : State::incomplete;
    std::size_t size = 0;
    const std::string_view line = std::string_view(buffer_).substr(0, line_end);
    if (!read_number(trimmed(line.substr(0, line.find(';'))), size, 16) || size + body_.size() > kMaxBodyBytes)
      return State::malformed;
    if (size == 0) {  // trailers are not used; the empty line behind them ends the body
      const std::size_t end = buffer_.compare(line_end, 4, "\r\n\r\n") == 0 ? line_end : buffer_.find("\r\n\r\n");
      if (end == std::string::npos) return State::incomplete;
      buffer_.erase(0, end + 4);
      return State::complete;
    }
    if (buffer_.size() < line_end + 2 + size + 2) return State::incomplete;
    if (buffer_.compare(line_end + 2 + size, 2, "\r\n") != 0) return State::malformed;
    body_.append(buffer_, line_end + 2, size);
    buffer_.erase(0, line_end + 2 + size + 2);
  }
}

}  // namespace tandem::client
