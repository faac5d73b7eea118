// SortedChunks against a set, through random insertions and removals.

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "core/neighbors/sorted_chunks.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

void compare(const SortedChunks& chunks, const std::set<uint32_t>& numbers) {
  std::vector<uint32_t> held;
  size_t before = SortedChunks::kChunk;
  for (const Vec<uint32_t>& chunk : chunks.chunks()) {
    EXPECT(!chunk.empty() && chunk.size() <= SortedChunks::kChunk);
    EXPECT(before + chunk.size() > SortedChunks::kChunk / 2);
    before = chunk.size();
    held.insert(held.end(), chunk.begin(), chunk.end());
  }
  EXPECT(std::equal(held.begin(), held.end(), numbers.begin(), numbers.end()));
}

TEST(sorted_chunks_through_random_updates) {
  Random random(testing::base_seed());
  SortedChunks chunks;
  std::set<uint32_t> numbers;
  for (int round = 0; round < 40; ++round) {
    const bool grows = round % 8 < 5;
    for (int i = 0; i < 1000; ++i) {
      const auto number = static_cast<uint32_t>(random.below(6000));
      if (numbers.contains(number) == grows) continue;
      if (grows) {
        chunks.insert(number);
        numbers.insert(number);
      } else {
        chunks.erase(number);
        numbers.erase(number);
      }
    }
    compare(chunks, numbers);
  }
}

TEST(sorted_chunks_filled_and_emptied) {
  for (const size_t count : {size_t{1}, SortedChunks::kChunk / 2, SortedChunks::kChunk / 2 + 1,
                             5 * SortedChunks::kChunk}) {
    Random random(testing::base_seed() + count);
    Vec<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 7u);
    random.shuffle(order);
    SortedChunks chunks;
    chunks.fill(order);
    std::set<uint32_t> numbers(order.begin(), order.end());
    compare(chunks, numbers);
    for (const uint32_t number : order) {
      chunks.erase(number);
      numbers.erase(number);
      compare(chunks, numbers);
    }
    chunks.insert(3);  // an emptied set can be used again
    compare(chunks, {3});
  }
}

}  // namespace
}  // namespace dynhac
