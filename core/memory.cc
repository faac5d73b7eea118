#include "core/memory.h"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace dynhac {

void fail_allocation(int64_t after) {
  internal::allocations_left.store(after < 0 ? -1 : after, std::memory_order_relaxed);
}

namespace internal {

void count_allocation() {
  // Compare-and-swap rather than a plain decrement: of several threads exactly one must see the
  // zero, and the counter must rest at -1, however many arrive late.
  int64_t left = allocations_left.load(std::memory_order_relaxed);
  while (left >= 0) {
    if (allocations_left.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
      if (left == 0) throw std::bad_alloc();
      return;
    }
  }
}

void* allocate_large(size_t bytes) {
  void* memory = ::operator new(bytes, std::align_val_t{kHugePage});
#ifdef __linux__
  // A hint: that it was not taken is no error.
  if (huge_pages) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void release_large(void* memory) noexcept {
  ::operator delete(memory, std::align_val_t{kHugePage});
}

}  // namespace internal
}  // namespace dynhac
