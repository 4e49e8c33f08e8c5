#include "net/heap_trim.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <malloc.h>

namespace tandem::net {
namespace {

// glibc keeps up to seven free blocks of each small size at hand. They lie wherever they were freed last, and each
// keeps its page from the kernel. So of more blocks than that the lowest are freed first, and kept; the others go back
// to the heap. Where an allocator works in another way, this costs a fraction of a millisecond and changes nothing.
void gather_spare_blocks() noexcept {
  constexpr std::size_t kSmallest = 24, kStep = 16, kSizes = 64, kTaken = 32;
  std::array<void*, kTaken> blocks;
  for (std::size_t i = 0; i < kSizes; ++i) {
    for (void*& block : blocks) {
      block = std::malloc(kSmallest + i * kStep);
      if (block != nullptr) *static_cast<volatile char*>(block) = 0;  // or the compiler leaves the pair out
    }
    std::sort(blocks.begin(), blocks.end(), std::less<>());
    for (void* const block : blocks) std::free(block);
  }
}

}  // namespace

void HeapTrim::look(TimePoint now) noexcept {
  if (now < next_) return;
  next_ = now + seconds(5);
  if (accepted_ >= kCrowd) rounds_ = kRounds;
  accepted_ = 0;
  if (rounds_ == 0) return;
  --rounds_;
  gather_spare_blocks();
  ::malloc_trim(0);
}

}  // namespace tandem::net
