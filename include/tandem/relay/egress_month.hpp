// What the box has sent in this calendar month (UTC), against the operator's budget: alerts at 80 and 100 %, and, where
// the budget is hard, no new rooms beyond it (3-operations 3.2). The month only moves forward, so a clock that steps
// back loses nothing.
#pragma once

#include "tandem/core/observer.hpp"
#include "tandem/core/time.hpp"
#include "tandem/relay/settings.hpp"

#include <cstdint>
#include <optional>

namespace tandem::relay {

// year * 12 + month - 1
[[nodiscard]] std::int32_t month_of(WallTime wall) noexcept;

class EgressMonth {
 public:
  void count(std::uint64_t bytes) noexcept { bytes_ += bytes; }
  void restore(std::int32_t month, std::uint64_t bytes);  // what earlier runs counted
  // Rolls the month and reports the alerts that are due, each once a month.
  void tick(WallTime wall, const std::optional<Settings::Egress>& budget, Observer& observer);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::int32_t month() const noexcept { return month_; }
  [[nodiscard]] bool is_spent(const std::optional<Settings::Egress>& budget) const noexcept {
    return budget && budget->hard && bytes_ >= budget->limit_bytes;
  }

 private:
  std::int32_t month_ = 0;  // 0: not told yet
  std::uint64_t bytes_ = 0;
  int alerted_percent_ = 0;
};

}  // namespace tandem::relay
