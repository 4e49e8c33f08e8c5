#include "tandem/net/timer_wheel.hpp"

#include <algorithm>
#include <bit>

namespace tandem::net {
namespace {

std::size_t index(std::int64_t tick, std::int64_t slots) noexcept {
  return static_cast<std::size_t>(tick & (slots - 1));
}

}  // namespace

TimerWheel::TimerWheel(TimePoint start)
    : slots_(std::make_unique<Slots>()), cursor_(start.time_since_epoch().count() >> kShift) {
  for (auto& head : slots_->heads) head.prev = head.next = &head;
}

void TimerWheel::link(TimerNode& node) noexcept {
  const std::int64_t nanos = node.due.time_since_epoch().count();
  const std::int64_t round_up = (std::int64_t{1} << kShift) - 1;
  std::int64_t tick = nanos > INT64_MAX - round_up ? INT64_MAX >> kShift : (nanos + round_up) >> kShift;
  tick = std::clamp(tick, cursor_ + 1, cursor_ + kSlots - 1);
  const std::size_t i = index(tick, kSlots);
  TimerNode& head = slots_->heads[i];
  node.prev = head.prev;
  node.next = &head;
  head.prev->next = &node;
  head.prev = &node;
  slots_->used[i / 64] |= std::uint64_t{1} << (i % 64);
}

void TimerWheel::unlink(TimerNode& node) noexcept {
  node.prev->next = node.next;
  node.next->prev = node.prev;
  node.prev = node.next =
      nullptr;  // a slot that this empties keeps its bit until the cursor passes: a spurious wake at worst
}

void TimerWheel::set(TimerNode& node, TimePoint due) noexcept {
  if (node.armed()) {
    if (node.due == due) return;
    unlink(node);
  }
  node.due = due;
  if (due != kNever) link(node);
}

void TimerWheel::cancel(TimerNode& node) noexcept {
  if (node.armed()) unlink(node);
  node.due = kNever;
}

TimePoint TimerWheel::next() const noexcept {
  // From the slot behind the cursor, once around; words at a time.
  for (std::int64_t step = 1; step < kSlots;) {
    const std::size_t i = index(cursor_ + step, kSlots);
    const std::uint64_t rest = slots_->used[i / 64] >> (i % 64);
    if (rest != 0) {
      const std::int64_t tick = cursor_ + step + std::countr_zero(rest);
      return TimePoint{Duration{tick << kShift}};
    }
    step += static_cast<std::int64_t>(64 - i % 64);
  }
  return kNever;
}

TimerNode* TimerWheel::pop(TimePoint now) noexcept {
  const std::int64_t last = now.time_since_epoch().count() >> kShift;
  if (last - cursor_ > kSlots) cursor_ = last - kSlots;  // a long sleep: every slot is due, once around is enough
  while (cursor_ < last) {
    const std::size_t i = index(cursor_ + 1, kSlots);
    TimerNode& head = slots_->heads[i];
    if ((slots_->used[i / 64] >> (i % 64) & 1) != 0) {
      while (head.next != &head) {
        TimerNode& node = *head.next;
        unlink(node);
        if (node.due <= now) return &node;
        // Past the horizon when it was set. Linking relative to the slot at hand could put it back into that very slot.
        const std::int64_t here = cursor_;
        ++cursor_;
        link(node);
        cursor_ = here;
      }
      slots_->used[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    }
    ++cursor_;
  }
  return nullptr;
}

}  // namespace tandem::net
