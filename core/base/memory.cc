#include "core/base/memory.h"

#include <new>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace dynhac {

void fail_allocation(int64_t after) {
  internal::allocations_left.store(after < 0 ? -1 : after, std::memory_order_relaxed);
}

namespace internal {

#ifdef __linux__
namespace {

size_t pages(size_t bytes) {  // rounded up to whole pages
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace
#endif

void count_allocation() {
  // Compare-and-swap rather than a plain decrement: of several threads exactly one must see the
  // zero, and the counter must stay at -1 whatever other threads do.
  int64_t left = allocations_left.load(std::memory_order_relaxed);
  while (left >= 0) {
    if (allocations_left.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
      if (left == 0) throw std::bad_alloc();
      return;
    }
  }
}

#ifdef __linux__

void* allocate_large(size_t bytes) {
  // Maps more than needed and keeps an aligned part.
  const size_t kept = pages(bytes), mapped = kept + kHugePage;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(start);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + kept, mapped - before - kept);
  // A hint: if the system ignores it, that is no error.
  if (huge_pages) madvise(begin + before, kept, MADV_HUGEPAGE);
  return begin + before;
}

void release_large(void* memory, size_t bytes) noexcept {
  munmap(memory, pages(bytes));
}

#else

void* allocate_large(size_t bytes) {
  return ::operator new(bytes, std::align_val_t{kHugePage});
}

void release_large(void* memory, size_t) noexcept {
  ::operator delete(memory, std::align_val_t{kHugePage});
}

#endif

}  // namespace internal
}  // namespace dynhac
