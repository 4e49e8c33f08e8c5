#include "tandem/relay/egress_month.hpp"

namespace tandem::relay {

std::int32_t month_of(WallTime wall) noexcept {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(wall)};
  return static_cast<int>(day.year()) * 12 + static_cast<std::int32_t>(static_cast<unsigned>(day.month())) - 1;
}

void EgressMonth::restore(std::int32_t month, std::uint64_t bytes) {
  if (month < month_) return;  // a month that is over
  month_ = month;
  bytes_ += bytes;
}

void EgressMonth::tick(WallTime wall, const std::optional<Settings::Egress>& budget, Observer& observer) {
  const std::int32_t now = month_of(wall);
  if (now > month_) {
    if (month_ != 0) {
      bytes_ = 0;
      alerted_percent_ = 0;
    }
    month_ = now;
  }
  if (!budget) return;
  for (const int percent : {80, 100}) {
    const auto threshold = static_cast<double>(budget->limit_bytes) * percent / 100;
    if (alerted_percent_ < percent && static_cast<double>(bytes_) >= threshold) {
      alerted_percent_ = percent;
      observer.observe(observed::EgressAlert{percent, ByteCount{bytes_}, ByteCount{budget->limit_bytes}});
    }
  }
}

}  // namespace tandem::relay
