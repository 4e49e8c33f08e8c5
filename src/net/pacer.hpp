// Pacing by not reading: how much a source may read now, and when it may go on (limits.*_bytes_per_second;
// 3-operations 3.2). Bursts are at most one second's worth. Of the box's budget, sources that wait are served in turn,
// so that none starves.
#pragma once

#include "tandem/core/time.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include <boost/intrusive_ptr.hpp>

namespace tandem::net {

class Connection;
using ConnectionPtr = boost::intrusive_ptr<Connection>;

// A token bucket of bytes. May be overdrawn (a TLS record can hold more than was read for it); then it waits longer.
class RateBucket {
 public:
  RateBucket(std::uint64_t bytes_per_second, TimePoint now) noexcept
      : rate_(static_cast<double>(bytes_per_second)), level_(rate_), at_(now) {}

  void set_rate(std::uint64_t bytes_per_second, TimePoint now) noexcept {
    refill(now);
    rate_ = static_cast<double>(bytes_per_second);
    level_ = std::min(level_, rate_);
  }
  // Less than this is not worth a read: a sixteenth of a second, 4 KiB at most, one byte at least.
  [[nodiscard]] double quantum() const noexcept { return std::clamp(rate_ / 16, 1.0, 4096.0); }
  // Bytes that may be read now; 0 where it is less than a quantum.
  [[nodiscard]] std::uint64_t available(TimePoint now) noexcept {
    refill(now);
    return level_ < quantum() ? 0 : static_cast<std::uint64_t>(level_);
  }
  void spend(std::uint64_t bytes) noexcept { level_ -= static_cast<double>(bytes); }
  [[nodiscard]] TimePoint next(TimePoint now) noexcept {  // when a quantum will be there
    refill(now);
    const double missing = std::max(0.0, quantum() - level_);
    return now + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(missing / rate_ + 0.001));
  }

 private:
  void refill(TimePoint now) noexcept {
    level_ = std::min(rate_, level_ + rate_ * to_seconds(now - at_));
    at_ = now;
  }
  double rate_, level_;
  TimePoint at_;
};

class BoxPacer {
 public:
  void set_rate(std::optional<std::uint64_t> bytes_per_second, TimePoint now) {
    if (!bytes_per_second)
      bucket_.reset();
    else if (bucket_)
      bucket_->set_rate(*bytes_per_second, now);
    else
      bucket_.emplace(*bytes_per_second, now);
  }
  [[nodiscard]] bool on() const noexcept { return bucket_.has_value(); }
  // What a source that does not wait yet may read; 0: it must wait().
  [[nodiscard]] std::uint64_t available(TimePoint now) { return waiting_.empty() ? bucket_->available(now) : 0; }
  void wait(ConnectionPtr source) { waiting_.push_back(std::move(source)); }
  void spend(std::uint64_t bytes) noexcept { bucket_->spend(bytes); }
  [[nodiscard]] TimePoint next_grant(TimePoint now) {
    return waiting_.empty() ? kNever : bucket_ ? bucket_->next(now) : now + milliseconds(1);
  }
  // The next source to go on, and how much it may read; null where none may.
  [[nodiscard]] ConnectionPtr grant(TimePoint now, std::uint64_t& bytes);
  void clear() { waiting_.clear(); }

 private:
  static constexpr std::uint64_t kShare = 16 * 1024;  // one source's part before the next one's
  std::optional<RateBucket> bucket_;
  std::deque<ConnectionPtr> waiting_;
};

}  // namespace tandem::net
