// What the status page shows of the past: throughput now and over the last hour, and how far a drain has come. Pure:
// sampled once a second by whoever has a clock; memory is constant.
#pragma once

#include "tandem/core/time.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace tandem::admin {

class History {
 public:
  // relayed_bytes: the total since the start, ascending. Samples further apart than a second are spread evenly.
  void sample(std::uint64_t relayed_bytes, std::uint64_t draining_rooms, TimePoint now);

  [[nodiscard]] double bytes_per_second() const noexcept;  // over the last five seconds or so
  [[nodiscard]] std::vector<double> last_hour() const;     // bytes per second of each minute, oldest first; at most 60
  [[nodiscard]] std::uint64_t drain_began_with() const noexcept {
    return drain_peak_;
  }  // rooms; 0 where nothing drains

 private:
  struct Point {
    TimePoint at{};
    std::uint64_t bytes = 0;
  };
  static constexpr std::size_t kRecent = 6, kMinutes = 60;

  std::array<Point, kRecent> recent_{};
  std::size_t recent_count_ = 0;
  std::array<double, kMinutes> minutes_{};  // bytes of each whole minute, a ring
  std::size_t minute_count_ = 0, next_minute_ = 0;
  Point minute_began_;
  std::uint64_t drain_peak_ = 0;
};

}  // namespace tandem::admin
