// Piles against a set, through random insertions and removals.

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "core/neighbors/pile.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

void compare(const Pile& pile, const std::set<uint32_t>& numbers) {
  std::vector<uint32_t> held;
  size_t before = Pile::kChunk;
  for (const Vec<uint32_t>& chunk : pile.chunks()) {
    EXPECT(!chunk.empty() && chunk.size() <= Pile::kChunk);
    EXPECT(before + chunk.size() > Pile::kChunk / 2);
    before = chunk.size();
    held.insert(held.end(), chunk.begin(), chunk.end());
  }
  EXPECT(std::equal(held.begin(), held.end(), numbers.begin(), numbers.end()));
}

TEST(pile_through_random_updates) {
  Random random(testing::base_seed());
  Pile pile;
  std::set<uint32_t> numbers;
  for (int round = 0; round < 40; ++round) {
    const bool grows = round % 8 < 5;
    for (int i = 0; i < 1000; ++i) {
      const auto number = static_cast<uint32_t>(random.below(6000));
      if (numbers.contains(number) == grows) continue;
      if (grows) {
        pile.insert(number);
        numbers.insert(number);
      } else {
        pile.erase(number);
        numbers.erase(number);
      }
    }
    compare(pile, numbers);
  }
}

TEST(pile_filled_and_emptied) {
  for (const size_t count : {size_t{1}, Pile::kChunk / 2, Pile::kChunk / 2 + 1, 5 * Pile::kChunk}) {
    Random random(testing::base_seed() + count);
    Vec<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 7u);
    random.shuffle(order);
    Pile pile;
    pile.fill(order);
    std::set<uint32_t> numbers(order.begin(), order.end());
    compare(pile, numbers);
    for (const uint32_t number : order) {
      pile.erase(number);
      numbers.erase(number);
      compare(pile, numbers);
    }
    pile.insert(3);  // an empty one starts again
    compare(pile, {3});
  }
}

}  // namespace
}  // namespace dynhac
