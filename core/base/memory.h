// The allocator of every container in the core, with fault injection for tests.
//
// After fail_allocation(k), allocation number k from then on throws std::bad_alloc, once; then the
// injection is off again. While off it costs one relaxed load per allocation, so that the code
// under test is the code that ships.
//
// All containers of the core are Vec, or are built on it: fault injection sees no other memory.

#ifndef DYNHAC_BASE_MEMORY_H_
#define DYNHAC_BASE_MEMORY_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dynhac {

// Allocation number `after` from now (0: the next one, in any thread) throws std::bad_alloc, and
// switches the injection off; a negative value switches it off at once.
void fail_allocation(int64_t after);

namespace internal {

// Allocations that still succeed before one fails; negative: injection is off.
inline std::atomic<int64_t> allocations_left{-1};

// Counts one allocation down; throws std::bad_alloc when it is the chosen one.
void count_allocation();

inline constexpr size_t kHugePage = size_t{1} << 21;
inline thread_local bool huge_pages = false;  // see HugePages

// For at least kHugePage bytes. Every block is a mapping of its own, so that the advice given for
// its pages ends with it.
void* allocate_large(size_t bytes);
void release_large(void* memory, size_t bytes) noexcept;

}  // namespace internal

// While one of these lives (with wanted == true), large allocations of its thread ask for huge
// pages. Updates access memory at random, and with pages of 4 KiB much of the cost of a cache miss
// is the TLB miss. But the system may take many milliseconds to provide a huge page: acceptable for
// a build, not for a single update.
class HugePages {
 public:
  explicit HugePages(bool wanted) : before_(internal::huge_pages) { internal::huge_pages = wanted; }
  ~HugePages() { internal::huge_pages = before_; }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

 private:
  bool before_;
};

template <class T>
struct Allocator {
  using value_type = T;

  Allocator() noexcept = default;
  template <class U>
  Allocator(const Allocator<U>&) noexcept {}

  T* allocate(size_t count) {
    if (internal::allocations_left.load(std::memory_order_relaxed) >= 0) [[unlikely]] {
      internal::count_allocation();
    }
    if (count < kLarge) return std::allocator<T>().allocate(count);
    return static_cast<T*>(internal::allocate_large(count * sizeof(T)));
  }

  void deallocate(T* memory, size_t count) noexcept {
    if (count < kLarge) {
      std::allocator<T>().deallocate(memory, count);
    } else {
      internal::release_large(memory, count * sizeof(T));
    }
  }

  template <class U>
  bool operator==(const Allocator<U>&) const noexcept {
    return true;
  }

 private:
  static constexpr size_t kLarge = (internal::kHugePage + sizeof(T) - 1) / sizeof(T);  // objects
};

template <class T>
using Vec = std::vector<T, Allocator<T>>;

// Leaves room to spare also after a large batch, so that the next element does not copy everything.
// What is not written takes no memory from the system.
template <class T>
void make_room(Vec<T>& values, size_t count) {
  if (count > values.capacity()) values.reserve(std::max(count + count / 4, 2 * values.capacity()));
}

// Empties a buffer that is reused. It keeps its memory unless that has grown very large.
template <class T>
bool is_large(const Vec<T>& buffer) noexcept {
  constexpr size_t kKeptBytes = 1 << 22;
  return buffer.capacity() * sizeof(T) > kKeptBytes;
}
template <class T>
void recycle(Vec<T>& buffer) noexcept {
  buffer.clear();
  if (is_large(buffer)) Vec<T>().swap(buffer);
}

}  // namespace dynhac

#endif  // DYNHAC_BASE_MEMORY_H_
