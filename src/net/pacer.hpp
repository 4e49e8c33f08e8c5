// Pacing by not reading: how much a source may read now, and when it may go on (limits.*_bytes_per_second;
// 3-operations 3.2). Bursts are at most one second's worth. Of the box's budget, sources that wait are served in turn,
// so that none starves.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/net/rate_bucket.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include <boost/intrusive_ptr.hpp>

namespace tandem::net {

class Connection;
using ConnectionPtr = boost::intrusive_ptr<Connection>;

class BoxPacer {
 public:
  void set_rate(std::optional<std::uint64_t> bytes_per_second, TimePoint now) {
    if (!bytes_per_second)
      bucket_.reset();
    else if (bucket_)
      bucket_->set_rate(*bytes_per_second, now);
    else
      bucket_.emplace(*bytes_per_second, now);
  }
  [[nodiscard]] bool on() const noexcept { return bucket_.has_value(); }
  // What a source that does not wait yet may read; 0: it must wait().
  [[nodiscard]] std::uint64_t available(TimePoint now) { return waiting_.empty() ? bucket_->available(now) : 0; }
  void wait(ConnectionPtr source) { waiting_.push_back(std::move(source)); }
  void spend(std::uint64_t bytes) noexcept { bucket_->spend(bytes); }
  [[nodiscard]] TimePoint next_grant(TimePoint now) {
    return waiting_.empty() ? kNever : bucket_ ? bucket_->next(now) : now + milliseconds(1);
  }
  // The next source to go on, and how much it may read; null where none may.
  [[nodiscard]] ConnectionPtr grant(TimePoint now, std::uint64_t& bytes);
  void clear() { waiting_.clear(); }

 private:
  static constexpr std::uint64_t kShare = 16 * 1024;  // one source's part before the next one's
  std::optional<RateBucket> bucket_;
  std::deque<ConnectionPtr> waiting_;
};

}  // namespace tandem::net
