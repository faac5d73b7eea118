// FlatMap against std::map, its guarantees when memory runs out, and the fault injection itself.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

// Every entry of either map is in the other one, by find and by for_each.
template <class Map, class Model>
void expect_same(const Map& map, const Model& model) {
  EXPECT_EQ(map.size(), model.size());
  Model seen;
  map.for_each([&seen](auto key, const auto& value) { EXPECT(seen.emplace(key, value).second); });
  EXPECT(seen == model);
  for (const auto& [key, value] : model) {
    const auto* found = map.find(key);
    EXPECT(found != nullptr && *found == value);
  }
}

template <class Key>
void play(uint64_t seed, const std::vector<Key>& keys, int steps) {
  Random random(seed);
  FlatMap<int64_t, Key> map;
  std::map<Key, int64_t> model;
  for (int step = 0; step < steps; ++step) {
    const Key key = random.pick(keys);
    const int64_t value = random.below(1000);
    switch (random.below(5)) {
      case 0: {
        const auto [slot, added] = map.insert(key, value);
        EXPECT_EQ(added, model.emplace(key, value).second);
        EXPECT_EQ(*slot, model[key]);
        break;
      }
      case 1:
        map[key] += value;
        model[key] += value;
        break;
      case 2:
      case 3:
        EXPECT_EQ(map.erase(key), model.erase(key) > 0);
        break;
      default:
        EXPECT_EQ(map.contains(key), model.contains(key));
    }
    if (random.chance(0.002)) {
      map.clear();
      model.clear();
    }
    if (random.chance(0.002)) map.reserve(static_cast<size_t>(random.below(200)));
    if (step % 16 == 0) expect_same(map, model);
  }
  expect_same(map, model);
}

TEST(flat_map_follows_std_map) {
  for (uint64_t round = 0; round < 8; ++round) {
    const uint64_t seed = testing::base_seed() + round;
    std::vector<uint32_t> keys = {0, 1, 0xFFFFFFFE};
    for (uint32_t i = 0; i < (round + 1) * 12; ++i) keys.push_back(i * 64);
    play<uint32_t>(seed, keys, 4000);
  }
}

TEST(flat_map_takes_every_int64) {
  using Limits = std::numeric_limits<int64_t>;
  for (uint64_t round = 0; round < 8; ++round) {
    std::vector<int64_t> keys = {Limits::min(), Limits::max(), 0, -1, 1, Limits::max() - 1};
    for (int64_t i = 0; i < static_cast<int64_t>(round) * 8; ++i) keys.push_back(i << 40);
    play<int64_t>(testing::base_seed() + round, keys, 4000);
  }
}

TEST(flat_map_empty) {
  FlatMap<int64_t> map;
  EXPECT(map.empty());
  EXPECT(map.find(7) == nullptr);
  EXPECT(!map.erase(7));
  map.clear();
  map.for_each([](uint32_t, int64_t) { EXPECT(false); });
  FlatMap<int64_t, int64_t> wide;
  EXPECT(wide.find(std::numeric_limits<int64_t>::max()) == nullptr);
  EXPECT(!wide.erase(std::numeric_limits<int64_t>::max()));
}

TEST(flat_map_copies_moves_and_swaps) {
  FlatMap<int64_t, int64_t> a, b;
  for (int64_t i = 0; i < 100; ++i) a[i] = i * i;
  a[std::numeric_limits<int64_t>::max()] = 5;
  b[3] = 4;
  FlatMap<int64_t, int64_t> copy = a;
  a.swap(b);
  EXPECT_EQ(a.size(), 1u);
  EXPECT_EQ(b.size(), 101u);
  const FlatMap<int64_t, int64_t> moved = std::move(copy);
  EXPECT_EQ(copy.size(), 0u);  // a moved-from map is an empty one, and usable
  copy[1] = 2;
  EXPECT_EQ(*moved.find(99), 99 * 99);
  EXPECT_EQ(*moved.find(std::numeric_limits<int64_t>::max()), 5);
  b = moved;
  EXPECT_EQ(b.size(), 101u);
}

TEST(flat_map_releases_values_it_erases) {
  const auto token = std::make_shared<int>(1);
  FlatMap<std::shared_ptr<int>> map;
  for (uint32_t i = 0; i < 100; ++i) map.insert(i, token);
  EXPECT_EQ(token.use_count(), 101);
  for (uint32_t i = 0; i < 50; ++i) map.erase(i);
  EXPECT_EQ(token.use_count(), 51);
  map.clear();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(flat_map_reserve_prevents_allocation) {
  FlatMap<int64_t> map;
  map.reserve(1000);
  fail_allocation(0);
  for (uint32_t i = 0; i < 1000; ++i) map[i] = i;
  fail_allocation(-1);
  EXPECT_EQ(map.size(), 1000u);
}

TEST(flat_map_insert_is_all_or_nothing) {
  FlatMap<int64_t, int64_t> map;
  std::map<int64_t, int64_t> model;
  int failures = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const int64_t key = i == 0 ? std::numeric_limits<int64_t>::max() : i;
    fail_allocation(0);
    try {
      map[key] = i;
    } catch (const std::bad_alloc&) {
      ++failures;
      expect_same(map, model);
      map[key] = i;  // the injection is off after one failure
    }
    fail_allocation(-1);
    model[key] = i;
  }
  EXPECT(failures >= 5);
  expect_same(map, model);
}

TEST(flat_map_copies_entries_in_linear_time) {
  // Keys come in the order of their home slots: without the reserve they would cluster in the first
  // half of the table, and this would take minutes.
  FlatMap<int64_t> a, b;
  const uint32_t count = 700'000;
  for (uint32_t i = 0; i < count; ++i) a[i] = b[i + count / 2] = 1;
  b.reserve(a.size() + b.size());
  a.for_each([&b](uint32_t key, int64_t value) { b[key] += value; });
  EXPECT_EQ(b.size(), count + count / 2);
}

TEST(fail_allocation_hits_the_chosen_one_once) {
  for (int64_t after = 0; after < 4; ++after) {
    fail_allocation(after);
    for (int64_t i = 0; i < 6; ++i) {
      bool failed = false;
      try {
        Vec<int> memory(10);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      EXPECT_EQ(failed, i == after);
    }
  }
  fail_allocation(1);
  fail_allocation(-1);
  for (int i = 0; i < 4; ++i) Vec<int> memory(10);
}

}  // namespace
}  // namespace dynhac
