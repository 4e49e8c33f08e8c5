// How many proofs a room still judges: 40 in any 10 seconds (1-wire 1.4, rule 1). A refused proof does not count, so
// that a flood costs the room its share of the window but can never lock it for good.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/room/limits.hpp"

#include <algorithm>
#include <vector>

namespace tandem::room {

class ProofRate {
 public:
  [[nodiscard]] bool admit(TimePoint now) {
    forget(now);
    if (judged_.size() >= kProofsPerWindow) return false;
    judged_.push_back(now);
    return true;
  }
  // Drops what is older than the window.
  void forget(TimePoint now) {
    const auto live = std::find_if(judged_.begin(), judged_.end(), [&](TimePoint t) { return now - t < kProofWindow; });
    judged_.erase(judged_.begin(), live);
    if (judged_.empty()) judged_.shrink_to_fit();
  }
  [[nodiscard]] TimePoint idle_at() const noexcept { return judged_.empty() ? kNever : judged_.back() + kProofWindow; }
  [[nodiscard]] bool empty() const noexcept { return judged_.empty(); }
  [[nodiscard]] bool is_spent(TimePoint now) const noexcept {
    return judged_.size() >= kProofsPerWindow && now - judged_.front() < kProofWindow;
  }

 private:
  std::vector<TimePoint> judged_;  // ascending
};

}  // namespace tandem::room
