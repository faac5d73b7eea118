// Large allocations: vectors keep their contents when they become large or small, with and without
// huge pages, and when allocations fail.

#include <cstdint>
#include <new>
#include <numeric>

#include "core/base/block_arena.h"
#include "core/base/memory.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

constexpr size_t kLarge = internal::kHugePage / sizeof(uint32_t);

TEST(memory_large_vectors_keep_what_they_hold) {
  for (const bool huge : {false, true}) {
    Vec<uint32_t> values(kLarge - 1);  // just not large
    std::iota(values.begin(), values.end(), 0u);
    {
      const HugePages scope(huge);
      values.resize(3 * kLarge, 7);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(values.data()) % internal::kHugePage, 0u);
    }
    values.shrink_to_fit();
    EXPECT_EQ(values[kLarge - 2], kLarge - 2);
    EXPECT_EQ(values[kLarge - 1], 7u);
    values.resize(10);
    values.shrink_to_fit();  // back to a small one
    EXPECT_EQ(values[9], 9u);
  }
}

TEST(memory_huge_pages_end_with_their_scope) {
  {
    const HugePages outer(true);
    const HugePages inner(false);
    EXPECT(!internal::huge_pages);
  }
  EXPECT(!internal::huge_pages);
}

TEST(memory_large_allocations_can_fail) {
  Vec<uint32_t> values(10, 3);
  fail_allocation(0);
  EXPECT_THROWS(std::bad_alloc, values.resize(kLarge));
  EXPECT_EQ(values.size(), 10u);
  values.resize(kLarge);
  EXPECT_EQ(values[9], 3u);
}

TEST(memory_arena_starts_small) {
  BlockArena arena;
  arena.allocate(BlockArena::capacity_for(50));
  EXPECT(arena.memory() <= size_t{1} << 17);
  std::byte* block = arena.allocate(BlockArena::capacity_for(8000));  // more than a first chunk
  block[8000 * BlockArena::kEntryBytes - 1] = std::byte{1};
  for (int i = 0; i < 1000; ++i) arena.allocate(BlockArena::capacity_for(1000));
  EXPECT(arena.memory() >= 16'000'000 && arena.memory() <= 22'000'000);
}

}  // namespace
}  // namespace dynhac
