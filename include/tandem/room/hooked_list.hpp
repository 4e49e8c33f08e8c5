// A doubly linked list through hooks inside its members: O(1) insertion and removal without an allocation. It owns
// nothing; a member must leave the list before it dies.
#pragma once

#include <cassert>
#include <cstddef>

namespace tandem::room {

template <class T>
struct ListHook {
  T* previous = nullptr;
  T* next = nullptr;
};

template <class T, ListHook<T> T::* Hook>
class HookedList {
 public:
  void push_back(T& member) noexcept {
    ListHook<T>& hook = member.*Hook;
    hook = {last_, nullptr};
    (last_ ? (last_->*Hook).next : first_) = &member;
    last_ = &member;
    ++size_;
  }
  void remove(T& member) noexcept {
    ListHook<T>& hook = member.*Hook;
    assert(size_ > 0 && (hook.previous || first_ == &member));
    (hook.previous ? (hook.previous->*Hook).next : first_) = hook.next;
    (hook.next ? (hook.next->*Hook).previous : last_) = hook.previous;
    hook = {};
    --size_;
  }
  [[nodiscard]] T* front() const noexcept { return first_; }
  [[nodiscard]] static T* next(const T& member) noexcept { return (member.*Hook).next; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tandem::room
