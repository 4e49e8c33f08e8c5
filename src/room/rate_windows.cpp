#include "tandem/room/rate_windows.hpp"

namespace tandem::room {

RateWindows::RateWindows(SipKey key, Duration window, std::size_t max_clients)
    : window_(window), max_clients_(max_clients), by_client_(0, KeyedHash{key}, &pool_) {}

Duration RateWindows::charge(const ClientKey& client, std::uint32_t limit, TimePoint now) {
  purge(now);
  const auto found = by_client_.find(client);
  if (found != by_client_.end()) {
    Window& w = *found->second;
    if (w.count >= limit) return w.start + window_ - now;
    ++w.count;
    return Duration::zero();
  }
  if (limit == 0) return window_;
  if (windows_.size() >= max_clients_) {
    by_client_.erase(windows_.front().client);
    windows_.pop_front();
  }
  windows_.push_back({client, now, 1});
  by_client_.emplace(client, std::prev(windows_.end()));
  return Duration::zero();
}

void RateWindows::purge(TimePoint now) {
  while (!windows_.empty() && now - windows_.front().start >= window_) {
    by_client_.erase(windows_.front().client);
    windows_.pop_front();
  }
}

}  // namespace tandem::room
