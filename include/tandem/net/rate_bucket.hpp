// A token bucket of bytes, for pacing by not reading (limits.*_bytes_per_second; 3-operations 3.2). Bursts are at most
// one second's worth. Pure.
#pragma once

#include "tandem/core/time.hpp"

#include <algorithm>
#include <cstdint>

namespace tandem::net {

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

}  // namespace tandem::net
