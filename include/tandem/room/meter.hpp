// What a room's traffic may still do: the frame rate and the daily byte quota of one room, shared by both its
// endpoints. The only part of the pure half that the data path calls, once per batch of frames: no allocation, no
// effects, no log.
//
// Ownership: a Meter lives inside its room; a connection holds a plain pointer to it from effect::Admit until it has
// reported its own end (or received effect::Close). Not thread-safe; never re-enters.
#pragma once

#include "tandem/core/time.hpp"

#include <cstdint>

namespace tandem::room {

enum class Verdict : std::uint8_t { ok, frame_rate_exceeded, daily_quota_exceeded };

struct MeterLimits {
  std::uint64_t messages_per_second = 500;      // UINT64_MAX: off
  std::uint64_t bytes_per_window = 8ull << 30;  // UINT64_MAX: off
  Duration window = std::chrono::hours(24);
};

class Meter {
 public:
  explicit Meter(const MeterLimits* limits) noexcept : limits_(limits) {}  // limits outlive the meter, and may change

  // Counts payload bytes and begun messages of an admitted endpoint. A window opens with the first byte after the last
  // one ended. Once a verdict is not ok the caller reports event::LimitCrossed; further calls give the same verdict
  // until then.
  [[nodiscard]] Verdict account(std::uint64_t bytes, std::uint32_t messages, TimePoint now) noexcept;

  // The caller has not read an endpoint for so long, as its peer took nothing. What it sent meanwhile arrives at once
  // now; it counts for the time it was sent in. Adds up; good for a second.
  void left_unread(Duration stood, TimePoint now) noexcept;

  // The offenders of a crossed frame rate were closed: the second that was crossed is over for those who come next.
  void forgive_rate() noexcept { messages_ = 0; }

  [[nodiscard]] bool quota_spent(TimePoint now) const noexcept;  // true until the window that was crossed ends
  [[nodiscard]] std::uint64_t window_bytes() const noexcept { return bytes_; }
  [[nodiscard]] TimePoint window_end() const noexcept;  // kNever where no window is open
  [[nodiscard]] TimePoint last_traffic() const noexcept { return last_; }

 private:
  const MeterLimits* limits_;
  TimePoint window_start_ = kNever, second_start_{}, last_{};
  TimePoint backlog_until_{};
  Duration backlog_{};  // left unread, and not made up for yet
  std::uint64_t bytes_ = 0, messages_ = 0;
};

}  // namespace tandem::room
