#include "tandem/client/resolver.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace tandem::client {

Resolver::Resolver(Bucket bucket, Memory memory) : bucket_(bucket), memory_(std::move(memory)) {}

Resolver::Offer Resolver::offer(std::shared_ptr<const shard::ShardMap> map, Duration max_age, TimePoint now) {
  const MapVersion version = map->version();
  if (memory_.floor && version < *memory_.floor) return Offer::older;
  keep(max_age, now);
  if (map_ && version == *memory_.floor) return Offer::known;
  memory_.floor = version;
  map_ = std::move(map);
  if (const std::string_view owner = map_->owner_of(bucket_); !owner.empty()) memory_.host = owner;
  return Offer::newer;
}

void Resolver::still_current(Duration max_age, TimePoint now) {
  if (map_) keep(max_age, now);
}

void Resolver::keep(Duration max_age, TimePoint now) {
  const Duration bounded = std::clamp<Duration>(max_age, Duration::zero(), kLongestMaxAge);
  fresh_until_ = now + bounded;
  refresh_at_ = now + std::max(bounded, kRefreshInterval);
}

std::optional<std::string> Resolver::host() const {
  if (map_) return std::string(map_->owner_of(bucket_));
  if (memory_.host.empty()) return std::nullopt;
  return memory_.host;
}

Duration parse_max_age(std::string_view cache_control) {
  std::string lower(cache_control);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::optional<long> age;
  for (std::size_t at = 0; at < lower.size();) {
    const std::size_t end = std::min(lower.find(',', at), lower.size());
    std::string_view directive(lower.data() + at, end - at);
    while (!directive.empty() && directive.front() == ' ') directive.remove_prefix(1);
    while (!directive.empty() && directive.back() == ' ') directive.remove_suffix(1);
    at = end + 1;
    if (directive == "no-store" || directive == "no-cache") return Duration::zero();
    if (!directive.starts_with("max-age=")) continue;
    directive.remove_prefix(8);
    if (directive.size() > 1 && directive.front() == '"') directive.remove_prefix(1);
    long number = 0;
    const auto parsed = std::from_chars(directive.data(), directive.data() + directive.size(), number);
    if (parsed.ec == std::errc::result_out_of_range) number = kLongestMaxAge / seconds(1);
    if (parsed.ec != std::errc::invalid_argument && number >= 0) age = number;
  }
  if (!age) return Duration::zero();
  return seconds(std::min<long>(*age, kLongestMaxAge / seconds(1)));
}

}  // namespace tandem::client
