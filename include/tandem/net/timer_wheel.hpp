// Deadlines for every socket behind one timer: a hashed wheel of slots about 17 ms wide.
//
// A node lives inside its owner (no allocation) and is in the wheel at most once. Setting, moving and cancelling cost
// O(1); what is due comes out in one call, so a thousand keepalives that fall into one slot cost one wake-up. A node
// never fires before its time, and at most one slot late. Deadlines past the horizon (about 68 s) are carried along and
// put back when their slot comes.
#pragma once

#include "tandem/core/time.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tandem::net {

struct TimerNode {
  TimerNode* prev = nullptr;
  TimerNode* next = nullptr;
  TimePoint due = kNever;

  TimerNode() = default;
  TimerNode(const TimerNode&) = delete;
  TimerNode& operator=(const TimerNode&) = delete;
  [[nodiscard]] bool armed() const noexcept { return next != nullptr; }
};

class TimerWheel {
 public:
  explicit TimerWheel(TimePoint start);

  void set(TimerNode& node, TimePoint due) noexcept;  // moves it where it is armed already; kNever cancels
  void cancel(TimerNode& node) noexcept;
  // When the wheel next wants expire() to be called; kNever where it is empty.
  [[nodiscard]] TimePoint next() const noexcept;

  // Calls on_due(node) for each node whose time has come; the node is out of the wheel by then. on_due may set, cancel
  // and destroy nodes at will; what it sets fires in a later call.
  template <class F>
  void expire(TimePoint now, F&& on_due) {
    while (TimerNode* node = pop(now)) on_due(*node);
  }

 private:
  static constexpr int kShift = 24;  // 2^24 ns
  static constexpr std::int64_t kSlots = 4096;

  [[nodiscard]] TimerNode* pop(TimePoint now) noexcept;
  void link(TimerNode& node) noexcept;
  void unlink(TimerNode& node) noexcept;

  struct Slots {
    std::array<TimerNode, kSlots> heads;  // circular lists
    std::array<std::uint64_t, kSlots / 64> used{};
  };
  std::unique_ptr<Slots> slots_;
  std::int64_t cursor_;  // every slot up to and including this tick has been emptied
};

}  // namespace tandem::net
