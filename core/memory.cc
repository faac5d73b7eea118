#include "core/memory.h"

#include <new>

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

}  // namespace internal
}  // namespace dynhac
