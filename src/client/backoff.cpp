#include "tandem/client/backoff.hpp"

#include <algorithm>

namespace tandem::client {

Duration backoff_bound(int failures) noexcept {
  constexpr Duration first = seconds(3), most = seconds(30);
  if (failures <= 1) return first;
  constexpr int already_most = 5;  // 2^5 s is past the bound; shifting further could overflow
  return std::min<Duration>(most, seconds(1) * (1 << std::min(failures, already_most)));
}

Duration Backoff::next(RandomSource& random) {
  count();
  const auto bound = static_cast<double>(backoff_bound(failures_).count());
  return Duration(static_cast<Duration::rep>(random.unit() * bound));
}

}  // namespace tandem::client
