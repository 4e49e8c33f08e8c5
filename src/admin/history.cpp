#include "tandem/admin/history.hpp"

#include <algorithm>

namespace tandem::admin {

namespace {
constexpr Duration kMinute = std::chrono::minutes(1);
}

void History::sample(std::uint64_t relayed_bytes, std::uint64_t draining_rooms, TimePoint now) {
  drain_peak_ = draining_rooms == 0 ? 0 : std::max(drain_peak_, draining_rooms);
  const bool first = recent_count_ == 0;
  if (recent_count_ == kRecent) {
    std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
    --recent_count_;
  }
  recent_[recent_count_++] = {now, relayed_bytes};
  if (first) {
    minute_began_ = {now, relayed_bytes};
    return;
  }
  // A loop that slept through several minutes fills each with its share.
  while (now - minute_began_.at >= kMinute) {
    const double share = to_seconds(kMinute) / to_seconds(now - minute_began_.at);
    const auto bytes = static_cast<std::uint64_t>(static_cast<double>(relayed_bytes - minute_began_.bytes) * share);
    minutes_[next_minute_] = static_cast<double>(bytes) / to_seconds(kMinute);
    next_minute_ = (next_minute_ + 1) % kMinutes;
    minute_count_ = std::min(minute_count_ + 1, kMinutes);
    minute_began_ = {minute_began_.at + kMinute, minute_began_.bytes + bytes};
  }
}

double History::bytes_per_second() const noexcept {
  if (recent_count_ < 2) return 0;
  const Point& from = recent_[0];
  const Point& to = recent_[recent_count_ - 1];
  const double seconds = to_seconds(to.at - from.at);
  return seconds > 0 ? static_cast<double>(to.bytes - from.bytes) / seconds : 0;
}

std::vector<double> History::last_hour() const {
  std::vector<double> out;
  out.reserve(minute_count_);
  for (std::size_t i = 0; i < minute_count_; ++i)
    out.push_back(minutes_[(next_minute_ + kMinutes - minute_count_ + i) % kMinutes]);
  return out;
}

}  // namespace tandem::admin
