#include "tandem/room/meter.hpp"

#include <algorithm>
#include <limits>

namespace tandem::room {
namespace {

std::uint64_t add_capped(std::uint64_t a, std::uint64_t b) noexcept {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

}  // namespace

Verdict Meter::account(std::uint64_t bytes, std::uint32_t messages, TimePoint now) noexcept {
  last_ = now;
  if (bytes > 0) {
    if (window_start_ == kNever || now - window_start_ >= limits_->window) {
      window_start_ = now;
      bytes_ = 0;
    }
    bytes_ = add_capped(bytes_, bytes);
  }
  if (now >= backlog_until_) backlog_ = Duration::zero();
  if (backlog_ > Duration::zero() && messages > 0) {
    const auto rate = static_cast<double>(limits_->messages_per_second);
    const auto old = static_cast<std::uint32_t>(std::min<double>(to_seconds(backlog_) * rate, messages));
    backlog_ -= std::chrono::duration_cast<Duration>(std::chrono::duration<double>(old / rate));
    messages -= old;
  }
  // A fixed second, opened by the first message after the last one: it never counts more than some real second held, so
  // nobody below the limit is closed.
  if (now - second_start_ >= seconds(1)) {
    second_start_ = now;
    messages_ = 0;
  }
  messages_ = add_capped(messages_, messages);
  if (messages_ > limits_->messages_per_second) return Verdict::frame_rate_exceeded;
  return quota_spent(now) ? Verdict::daily_quota_exceeded : Verdict::ok;
}

void Meter::left_unread(Duration stood, TimePoint now) noexcept {
  if (now >= backlog_until_) backlog_ = Duration::zero();
  backlog_ += stood;
  backlog_until_ = now + seconds(1);
}

bool Meter::quota_spent(TimePoint now) const noexcept {
  return bytes_ > limits_->bytes_per_window && now < window_end();
}

TimePoint Meter::window_end() const noexcept {
  return window_start_ == kNever ? kNever : window_start_ + limits_->window;
}

}  // namespace tandem::room
