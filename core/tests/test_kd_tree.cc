// The KD-tree against a sort of all distances, through random updates.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "core/neighbors/kd_tree.h"
#include "core/tests/small_ranges.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using Vector = std::vector<float>;

enum Shape { kSpread, kLattice, kEqual, kLine, kHalving, kShapes };

Vector random_vector(Random& random, Shape shape, size_t d) {
  Vector x(d);
  switch (shape) {
    case kSpread:
      for (float& v : x) v = static_cast<float>(random.uniform());
      break;
    case kLattice:
      for (float& v : x) v = static_cast<float>(random.below(4));
      break;
    case kEqual:
      if (random.chance(0.2)) x[random.next() % d] = static_cast<float>(random.uniform());
      break;
    case kLine:
      x[0] = static_cast<float>(random.below(50));
      break;
    default:  // ever nearer to an equal leaf
      x[random.next() % d] = std::ldexp(1.0f, -static_cast<int>(random.below(140)));
      if (random.chance(0.4)) std::fill(x.begin(), x.end(), 0.0f);
  }
  return x;
}

struct World {
  explicit World(size_t dimension, uint32_t threads = 1)
      : d(dimension), tree(static_cast<int64_t>(dimension), threads) {}

  void add(const std::vector<int64_t>& slots, const std::vector<Vector>& vectors) {
    Vector rows;
    for (size_t i = 0; i < slots.size(); ++i) {
      rows.insert(rows.end(), vectors[i].begin(), vectors[i].end());
      held[slots[i]] = vectors[i];
    }
    tree.add(slots, rows);
  }

  void remove(const std::vector<int64_t>& slots) {
    tree.remove(slots);
    for (const int64_t slot : slots) held.erase(slot);
  }

  void compare(const std::vector<Vector>& queries, size_t k) const {
    Vector rows;
    for (const Vector& q : queries) rows.insert(rows.end(), q.begin(), q.end());
    std::vector<int64_t> slots(queries.size() * k);
    std::vector<double> distances(queries.size() * k);
    tree.query(rows, k, slots, distances);
    for (size_t i = 0; i < queries.size(); ++i) {
      std::vector<std::pair<double, int64_t>> all;
      for (const auto& [slot, x] : held) {
        double sum = 0;
        for (size_t j = 0; j < d; ++j) {
          const double difference = double{queries[i][j]} - double{x[j]};
          sum += difference * difference;
        }
        all.emplace_back(std::sqrt(sum), slot);
      }
      std::sort(all.begin(), all.end());
      all.resize(k, {kInfinity, -1});
      for (size_t j = 0; j < k; ++j) {
        EXPECT_EQ(slots[i * k + j], all[j].second);
        EXPECT_EQ(distances[i * k + j], all[j].first);
      }
    }
  }

  size_t d;
  KdTree tree;
  std::map<int64_t, Vector> held;
};

TEST(kd_tree_through_random_updates) {
  for (int shape = 0; shape < kShapes; ++shape) {
    for (const size_t d : {1, 2, 5, 8}) {
      Random random(testing::base_seed() + static_cast<uint64_t>(shape) * 8 + d);
      const auto vector = [&] { return random_vector(random, static_cast<Shape>(shape), d); };
      World world(d);
      for (int round = 0; round < 60; ++round) {
        std::vector<int64_t> free, slots;
        for (int64_t slot = 0; slot < 700; ++slot) {
          (world.held.contains(slot) ? slots : free).push_back(slot);
        }
        random.shuffle(free);
        random.shuffle(slots);
        // Mostly growing, then mostly shrinking; once, all points are removed.
        const bool grows = round % 30 < 18;
        free.resize(static_cast<size_t>(random.below(grows ? 60 : 10)) % (free.size() + 1));
        slots.resize(static_cast<size_t>(random.below(grows ? 10 : 60)) % (slots.size() + 1));
        if (round == 45) {
          slots.clear();
          for (const auto& [slot, x] : world.held) slots.push_back(slot);
        }
        std::vector<Vector> vectors;
        for (size_t i = 0; i < free.size(); ++i) vectors.push_back(vector());
        world.add(free, vectors);
        world.tree.audit();
        world.remove(slots);
        world.tree.audit();
        EXPECT_EQ(world.tree.size(), world.held.size());
        std::vector<Vector> queries;
        for (int i = 0; i < (round % 10 == 0 ? 70 : 3); ++i) queries.push_back(vector());
        world.compare(queries, static_cast<size_t>(random.below(80)));
      }
    }
  }
}

TEST(kd_tree_built_by_threads) {
  const testing::SmallRanges small(1024);
  for (int shape = 0; shape < kShapes; ++shape) {
    for (const size_t d : {1, 3, 8}) {
      Random random(testing::base_seed() + static_cast<uint64_t>(shape) * 8 + d);
      for (const uint32_t threads : {1, 4}) {
        World world(d, threads);
        std::vector<int64_t> slots(3000);
        std::iota(slots.begin(), slots.end(), 0);
        random.shuffle(slots);
        std::vector<Vector> vectors;
        for (size_t i = 0; i < slots.size(); ++i) {
          vectors.push_back(random_vector(random, static_cast<Shape>(shape), d));
        }
        world.add(slots, vectors);
        world.tree.audit();
        vectors.resize(20);
        world.compare(vectors, 40);
        slots.resize(2900);
        world.remove(slots);
        world.tree.audit();
      }
    }
  }
}

TEST(kd_tree_grown_in_order_and_emptied_from_one_end) {
  World world(2);
  for (int64_t i = 0; i < 6000; ++i) {
    world.add({i}, {{static_cast<float>(i), static_cast<float>(i % 7)}});
  }
  world.tree.audit();
  world.compare({{3000.5f, 2}, {-1, 0}, {1e6f, 0}}, 60);
  for (int64_t i = 0; i < 5990; ++i) {
    world.remove({i});
    if (i % 500 == 0) {
      world.tree.audit();
      world.compare({{static_cast<float>(i), 3}}, 40);
    }
  }
  world.compare({{0, 0}}, 20);
}

TEST(kd_tree_of_many_equal_points) {
  World world(3);
  for (int64_t i = 2000; i > 0; --i) world.add({i}, {{1, 2, 3}});
  world.tree.audit();
  world.compare({{1, 2, 3}, {0, 0, 0}}, 70);
  for (int64_t i = 1; i < 140; ++i) {  // ever nearer
    world.add({2000 + i}, {{1 + std::ldexp(1.0f, -static_cast<int>(i)), 2, 3}});
  }
  world.tree.audit();
  world.compare({{1, 2, 3}, {1.5f, 2, 3}}, 70);
  for (int64_t i = 1; i <= 2000; ++i) world.remove({i});
  world.tree.audit();
  world.compare({{1, 2, 3}}, 10);
}

TEST(kd_tree_equal_leaf_shrinks) {
  std::vector<int64_t> many(40);
  std::iota(many.begin(), many.end(), 0);
  const std::vector<Vector> equal(many.size(), {1, 1});
  for (const size_t left : {0, 1, 3, 31, 32, 33}) {
    for (const Vector& next : {Vector{1, 1}, Vector{1, 2}}) {
      World world(2);
      world.add(many, equal);
      world.remove({many.begin() + static_cast<std::ptrdiff_t>(left), many.end()});
      world.tree.audit();
      world.add({50}, {next});
      world.tree.audit();
      world.compare({{1, 1}, {1, 2}}, 36);
      world.remove({50});
      world.tree.audit();
      world.compare({{1, 1}}, 36);
    }
  }
}

TEST(kd_tree_ends_of_the_range) {
  for (const float scale : {1e-45f, 1e-30f, 1e19f, 3e38f}) {
    Random random(testing::base_seed());
    World world(2);
    std::vector<int64_t> slots(300);
    std::vector<Vector> vectors;
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i] = static_cast<int64_t>(i);
      vectors.push_back({static_cast<float>(random.uniform() * 2 - 1) * scale,
                         static_cast<float>(random.below(3) - 1) * scale});
    }
    world.add(slots, vectors);
    world.tree.audit();
    world.compare(vectors, 9);
  }
}

TEST(kd_tree_rejects) {
  EXPECT_THROWS(std::invalid_argument, KdTree(0));
  EXPECT_THROWS(std::invalid_argument, KdTree(9));
  World world(1);
  world.add({3, 5}, {{0}, {1}});
  const float nan = std::nanf("");
  const std::vector<int64_t> held{7, 3}, negative{-1}, huge{int64_t{1} << 40}, twice{8, 9, 8},
      one{4};
  const Vector rows{1, 2, 3}, wrong{nan};
  const auto add = [&](const std::vector<int64_t>& slots) {
    world.tree.add(slots, std::span(rows).first(slots.size()));
  };
  EXPECT_THROWS(SlotError, add(held));
  EXPECT_THROWS(SlotError, add(negative));
  EXPECT_THROWS(SlotError, add(huge));
  EXPECT_THROWS(SlotError, add(twice));
  EXPECT_THROWS(std::invalid_argument, world.tree.add(one, wrong));
  EXPECT_THROWS(std::invalid_argument, world.tree.add(one, rows));
  EXPECT_THROWS(SlotError, world.tree.remove(held));
  EXPECT_THROWS(SlotError, world.tree.remove(huge));
  EXPECT_THROWS(SlotError, world.tree.remove(negative));
  int64_t slot;
  double distance;
  EXPECT_THROWS(std::invalid_argument, world.tree.query(wrong, 1, {&slot, 1}, {&distance, 1}));
  EXPECT_THROWS(std::invalid_argument, world.tree.query(rows, 1, {&slot, 1}, {&distance, 1}));
  world.tree.audit();
  world.compare({{0.2f}}, 3);
}

TEST(kd_tree_points) {
  World world(2);
  for (int64_t i = 0; i < 100; ++i) world.add({199 - i}, {{static_cast<float>(i / 60), 0}});
  const KdTree::Points points = world.tree.points();
  EXPECT_EQ(points.slots.size(), 100);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(points.slots[i], 100 + i);
    EXPECT_EQ(points.vectors[2 * i], world.held[points.slots[i]][0]);
  }
}

// After a failed allocation every call throws std::logic_error.
TEST(kd_tree_out_of_memory) {
  for (int64_t after = 0; after < 40; ++after) {
    World world(1);
    std::vector<int64_t> slots;
    std::vector<Vector> vectors;
    for (int64_t i = 0; i < 500; ++i) {
      slots.push_back(i);
      vectors.push_back({static_cast<float>(i % 100)});
    }
    world.add(slots, vectors);
    fail_allocation(after);
    bool failed = false;
    try {
      for (int64_t i = 500; i < 800; ++i) world.add({i}, {{static_cast<float>(i % 3)}});
      for (int64_t i = 0; i < 700; ++i) world.remove({i});
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    fail_allocation(-1);
    int64_t slot;
    double distance;
    const Vector query{0};
    if (!failed) continue;
    EXPECT_THROWS(std::logic_error, world.tree.query(query, 1, {&slot, 1}, {&distance, 1}));
    EXPECT_THROWS(std::logic_error, world.tree.remove({}));
    EXPECT_THROWS(std::logic_error, world.tree.add({}, {}));
    EXPECT_THROWS(std::logic_error, world.tree.points());
  }
}

}  // namespace
}  // namespace dynhac
