#include "net/pacer.hpp"

#include "net/connection.hpp"

namespace tandem::net {

ConnectionPtr BoxPacer::grant(TimePoint now, std::uint64_t& bytes) {
  while (!waiting_.empty()) {
    const std::uint64_t available = bucket_ ? bucket_->available(now) : kShare;
    if (available == 0) return nullptr;
    ConnectionPtr source = std::move(waiting_.front());
    waiting_.pop_front();
    if (source->phase() == Connection::Phase::dead) continue;
    bytes = std::min(available, kShare);
    return source;
  }
  return nullptr;
}

}  // namespace tandem::net
