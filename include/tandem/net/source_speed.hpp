// Whether a splice's source is fast enough for the larger of the kernel's two receive buffers (limits.socket_buffer,
// limits.fast_socket_buffer). With the small one a sender on a fast path finds the window closed thousands of times a
// GB, which costs a fifth more CPU; a large one behind a slow reader holds keystrokes up. So the large one is for
// sources that fill it in kFast or less, as long as they do and their peer stays the same (docs/decisions/013).
#pragma once

#include "tandem/core/time.hpp"

#include <cstddef>
#include <cstdint>

namespace tandem::net {

class SourceSpeed {
 public:
  static constexpr Duration kFast = milliseconds(20);
  static constexpr Duration kSlow = 4 * kFast;  // in between it stays what it is

  // -> enough has come for a verdict on a buffer of this size.
  [[nodiscard]] bool took(std::size_t bytes, std::size_t buffer) noexcept { return (counted_ += bytes) >= buffer; }

  // -> the verdict has changed. Asked when took() says so, or, to notice a source that hardly comes any more, at any
  // time: then there may be no verdict yet.
  [[nodiscard]] bool judge(TimePoint now, std::size_t buffer) noexcept {
    const Duration wall = now - since_;
    const bool measured = counted_ >= buffer;
    if (!measured && wall <= kSlow) return false;
    const bool was = fast_;
    if (wall > kSlow)
      fast_ = false;
    else if (wall <= kFast)
      fast_ = true;
    counted_ = 0;
    since_ = now;
    return fast_ != was;
  }

  [[nodiscard]] bool fast() const noexcept { return fast_; }

 private:
  TimePoint since_{};
  std::size_t counted_ = 0;
  bool fast_ = false;
};

}  // namespace tandem::net
