#include "tandem/net/http_head.hpp"

#include <algorithm>

namespace tandem::net {
namespace {

constexpr std::uint32_t kMaxChunkOverhead = 8 * 1024;

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyReader::BodyReader(const RequestHead& head) noexcept
    : state_(head.chunked ? State::size : State::plain), left_(head.content_length.value_or(0)) {}

BodyReader::Step BodyReader::read(std::string_view in, std::string& out) {
  if (state_ == State::done) return {Status::done, 0};
  if (state_ != State::plain) return read_chunks(in, out);
  if (left_ + out.size() > kMaxBodyBytes) return {Status::too_large, 0};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
  out.append(in.substr(0, n));
  left_ -= n;
  if (left_ == 0) state_ = State::done;
  return {left_ == 0 ? Status::done : Status::need_more, n};
}

// RFC 9112 7.1, extensions and trailers read and thrown away.
BodyReader::Step BodyReader::read_chunks(std::string_view in, std::string& out) {
  for (std::size_t at = 0; at < in.size();) {
    const char c = in[at];
    switch (state_) {
      case State::size:
        if (const int digit = hex_value(c); digit >= 0) {
          if (++digits_ > 8) return {Status::too_large, at};  // leading zeros do not make it longer than this either
          left_ = left_ << 4 | static_cast<unsigned>(digit);
          if (left_ + out.size() > kMaxBodyBytes) return {Status::too_large, at};
        } else if (digits_ == 0) {
          return {Status::malformed, at};
        } else if (c == ';' || c == ' ' || c == '\t') {
          state_ = State::extension;
        } else if (c == '\r') {
          state_ = State::size_lf;
        } else {
          return {Status::malformed, at};
        }
        break;
      case State::extension:
        if (c == '\r')
          state_ = State::size_lf;
        else if (c == '\n' || c == '\0')
          return {Status::malformed, at};
        if (++overhead_ > kMaxChunkOverhead) return {Status::malformed, at};
        break;
      case State::size_lf:
        if (c != '\n') return {Status::malformed, at};
        state_ = left_ == 0 ? State::trailer : State::data;
        digits_ = 0;
        trailer_line_empty_ = true;
        break;
      case State::data: {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size() - at));
        out.append(in.substr(at, n));
        at += n;
        left_ -= n;
        if (left_ == 0) state_ = State::data_cr;
        continue;
      }
      case State::data_cr:
        if (c != '\r') return {Status::malformed, at};
        state_ = State::data_lf;
        break;
      case State::data_lf:
        if (c != '\n') return {Status::malformed, at};
        state_ = State::size;
        break;
      case State::trailer:
        if (c == '\r')
          state_ = State::trailer_lf;
        else if (c == '\n' || c == '\0')
          return {Status::malformed, at};
        else
          trailer_line_empty_ = false;
        if (++overhead_ > kMaxChunkOverhead) return {Status::malformed, at};
        break;
      case State::trailer_lf:
        if (c != '\n') return {Status::malformed, at};
        if (trailer_line_empty_) {
          state_ = State::done;
          return {Status::done, at + 1};
        }
        state_ = State::trailer;
        trailer_line_empty_ = true;
        break;
      case State::plain:
      case State::done: return {Status::malformed, at};
    }
    ++at;
  }
  return {Status::need_more, in.size()};
}

}  // namespace tandem::net
