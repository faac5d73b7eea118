// Cells against a sort of all distances in double: exact ones always, others by their recall.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/neighbors/cells.h"
#include "core/neighbors/scan.h"
#include "core/tests/testing.h"
#include "core/tests/vector_shapes.h"

namespace dynhac {

void Cells::audit() const {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
  };
  require(intact_, "intact");
  size_t members = 0;
  for (size_t number = 0; number < n_cells(); ++number) {
    const Cell& cell = store_.cell(number);
    members += cell.size();
    require(cell.codes.size() == cell.size(), "codes");
    require(cell.size() <= kMostMembers, "too many members");
    require(n_cells() == 1 || cell.size() >= kFewestMembers, "too few members");
    double spread = 0;
    for (uint32_t position = 0; position < cell.size(); ++position) {
      const uint32_t place = cell.members[position];
      require(store_.cell_of(place) == number, "cell_of");
      require(store_.position_of(place) == position, "position_of");
      const double distance = store_.distance(number, vectors_.row(place));
      require(distance <= cell.radius, "radius");
      spread += distance * distance;
    }
    require(std::fabs(spread - cell.spread) <= 1e-6 * (1 + spread), "spread");
  }
  require(members == vectors_.n_places(), "members");
}

namespace {

using testing::Shape;
using testing::Vector;

constexpr Metric kMetrics[] = {Metric::kEuclidean, Metric::kCosine, Metric::kInnerProduct};

struct Answer {
  std::vector<int64_t> slots;
  std::vector<double> distances;
  bool operator==(const Answer&) const = default;
};

Answer ask(NeighborIndex& index, const Vector& queries, size_t dimension, size_t k) {
  const size_t n = queries.size() / dimension;
  Answer answer{std::vector<int64_t>(n * k), std::vector<double>(n * k)};
  index.query(queries, k, answer.slots, answer.distances, nullptr);
  return answer;
}

struct Owner : VectorRows {
  const float* row(int64_t slot) const override { return held.at(slot).data(); }
  std::map<int64_t, Vector> held;
};

// Cells, the scan, which is exact, and what both hold.
struct World {
  World(Metric metric, size_t d, double recall, uint32_t threads = 1, bool shared = false)
      : dimension(d),
        products(metric == Metric::kInnerProduct),
        cells(metric, d, recall, threads),
        scan(metric, d, 1) {
    if (shared) cells.read_vectors_from(owner);
  }

  void add(const std::vector<int64_t>& slots, const std::vector<Vector>& vectors) {
    Vector rows;
    for (size_t i = 0; i < slots.size(); ++i) {
      owner->held[slots[i]] = vectors[i];
      rows.insert(rows.end(), vectors[i].begin(), vectors[i].end());
    }
    cells.add(slots, rows, nullptr);
    scan.add(slots, rows, nullptr);
  }

  void remove(const std::vector<int64_t>& slots) {
    cells.remove(slots, nullptr);
    scan.remove(slots, nullptr);
    for (const int64_t slot : slots) owner->held.erase(slot);
  }

  std::vector<int64_t> some_slots(Random& random, double share) const {
    std::vector<int64_t> slots;
    for (const auto& [slot, x] : owner->held) {
      if (random.chance(share)) slots.push_back(slot);
    }
    return slots;
  }

  // Searches for some of the vectors; returns the recall. Distances are exact, rows are sorted, and
  // a vector finds itself.
  double recall(Random& random, size_t n, size_t k) {
    Vector queries;
    std::vector<int64_t> own;
    const std::vector<int64_t> all = some_slots(random, 1);
    for (size_t i = 0; i < n; ++i) own.push_back(random.pick(all));
    for (const int64_t slot : own) {
      const Vector& x = owner->held.at(slot);
      queries.insert(queries.end(), x.begin(), x.end());
    }
    const Answer found = ask(cells, queries, dimension, k);
    const Answer expected = ask(scan, queries, dimension, k);
    size_t hits = 0, wanted = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i * k; j < (i + 1) * k; ++j) {
        EXPECT_EQ(found.slots[j] < 0, expected.slots[j] < 0);
        if (found.slots[j] < 0) continue;
        EXPECT(owner->held.contains(found.slots[j]));
        EXPECT(found.distances[j] >= expected.distances[j]);
        EXPECT(j == i * k || found.distances[j - 1] <= found.distances[j]);
        hits += found.distances[j] <= expected.distances[(i + 1) * k - 1];
        ++wanted;
      }
      if (!products) EXPECT(found.distances[i * k] == expected.distances[i * k]);
    }
    return static_cast<double>(hits) / static_cast<double>(wanted);
  }

  size_t dimension;
  bool products;
  Cells cells;
  Scan scan;
  std::shared_ptr<Owner> owner = std::make_shared<Owner>();
};

// Around one of `classes` centres; they are far from each other if `apart` is large.
Vector clustered(Random& random, size_t d, int64_t first_class, int64_t classes, double apart) {
  Random centre(static_cast<uint64_t>(first_class + random.below(classes)));
  const Vector middle = testing::random_vector(centre, Shape::kSpread, d);
  Vector x = testing::random_vector(random, Shape::kSpread, d);
  for (size_t j = 0; j < d; ++j) x[j] += static_cast<float>(apart) * middle[j];
  return x;
}

std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> slots;
  for (int64_t slot = begin; slot < end; ++slot) slots.push_back(slot);
  return slots;
}

TEST(cells_with_recall_1_are_exact) {
  for (const Metric metric : kMetrics) {
    for (const size_t d : {size_t{1}, size_t{12}}) {
      for (int64_t shape = 0; shape < static_cast<int64_t>(Shape::kCount); ++shape) {
        Random random(testing::base_seed() + static_cast<uint64_t>(shape));
        World world(metric, d, 1, 1, shape % 2 == 0);
        int64_t top = 0;
        for (int step = 0; step < 5; ++step) {
          const int64_t count = step == 0 ? 900 : 1 + random.below(300);
          std::vector<Vector> vectors;
          for (int64_t i = 0; i < count; ++i) {
            vectors.push_back(testing::random_vector(random, static_cast<Shape>(shape), d));
            if (random.chance(0.05)) vectors.back() = random.pick(vectors);
          }
          world.add(range(top, top + count), vectors);
          top += count;
          world.cells.audit();
          EXPECT(world.recall(random, 6, 1 + random.next() % 20) == 1);
          world.remove(world.some_slots(random, 0.3));
          world.cells.audit();
          EXPECT(world.recall(random, 6, 5) == 1);
        }
      }
    }
  }
}

TEST(cells_with_recall_1_are_exact_in_many_dimensions) {
  for (const Metric metric : kMetrics) {
    for (const size_t d : {size_t{384}, size_t{4096}}) {
      Random random(testing::base_seed() + d);
      const auto shape = static_cast<Shape>(random.below(static_cast<int64_t>(Shape::kCount)));
      World world(metric, d, 1, 2, true);
      std::vector<Vector> vectors;
      for (int i = 0; i < 600; ++i) vectors.push_back(testing::random_vector(random, shape, d));
      for (int i = 0; i < 20; ++i) vectors.push_back(random.pick(vectors));
      world.add(range(0, 620), vectors);
      world.cells.audit();
      EXPECT(world.recall(random, 8, 10) == 1);
    }
  }
}

TEST(cells_keep_their_recall_through_turnovers_and_new_classes) {
  for (const Metric metric : kMetrics) {
    Random random(testing::base_seed());
    World world(metric, 16, 0.95);
    constexpr int64_t kWindow = 1500;
    for (int64_t turn = 0; turn < 10; ++turn) {
      // Classes of the later turns are new ones.
      for (int64_t begin = 0; begin < kWindow; begin += 250) {
        std::vector<Vector> vectors;
        for (int i = 0; i < 250; ++i) vectors.push_back(clustered(random, 16, turn * 5, 20, 1.5));
        const int64_t first = turn * kWindow + begin;
        if (turn > 0) world.remove(range(first - kWindow, first - kWindow + 250));
        world.add(range(first, first + 250), vectors);
      }
      world.cells.audit();
      EXPECT(world.cells.n_cells() > 2);
      EXPECT(world.recall(random, 100, 20) > 0.93);
      EXPECT(world.cells.measured_recall() >= 0.95);
    }
  }
}

TEST(cells_find_all_there_are_while_they_are_few) {
  Random random(testing::base_seed());
  World world(Metric::kCosine, 4, 0.9);
  EXPECT(ask(world.cells, {1, 2, 3, 4}, 4, 2) == (Answer{{-1, -1}, {INFINITY, INFINITY}}));
  for (int64_t slot = 0; slot < 40; ++slot) {
    world.add({slot}, {testing::random_vector(random, Shape::kZeros, 4)});
    EXPECT(world.recall(random, 3, 50) == 1);
  }
  world.remove(range(0, 40));
  EXPECT_EQ(world.cells.size(), 0u);
  world.cells.audit();
  world.add(range(5, 9), std::vector<Vector>(4, Vector{0, 0, 0, 0}));
  EXPECT(ask(world.cells, {0, 0, 0, 0}, 4, 2) == (Answer{{5, 6}, {1, 1}}));
}

// Vectors of one direction are equal for cosine, but distinct.
TEST(cells_of_vectors_that_cannot_be_divided) {
  for (const Metric metric : kMetrics) {
    Random random(testing::base_seed());
    World world(metric, 2, 0.9);
    for (int64_t slot = 0; slot < 1500; ++slot) {
      const auto size = static_cast<float>(slot % 750 + 1);
      world.add({slot}, {{size, 2 * size}});
    }
    world.cells.audit();
    EXPECT(world.cells.n_cells() > 1);
    world.recall(random, 20, 10);
    world.remove(range(0, 1450));
    world.cells.audit();
    EXPECT(world.recall(random, 20, 100) == 1);
  }
}

Cells::State changed(Cells& cells, Random random, int64_t top) {
  for (int step = 0; step < 6; ++step) {
    Vector rows;
    std::vector<int64_t> slots;
    for (int i = 0; i < 150; ++i) {
      slots.push_back(top++);
      const Vector x = clustered(random, 8, step, 6, 2);
      rows.insert(rows.end(), x.begin(), x.end());
    }
    cells.add(slots, rows, nullptr);
    cells.remove(range(top - 1000, top - 920), nullptr);
  }
  return cells.state();
}

bool same(const Cells::State& a, const Cells::State& b) {
  return a.slots == b.slots && a.sizes == b.sizes && a.changes == b.changes &&
         a.centres == b.centres && a.extents == b.extents && a.centre == b.centre &&
         a.unit == b.unit && a.additions_left == b.additions_left &&
         a.reach.count == b.reach.count && a.reach.credit == b.reach.credit &&
         a.reach.needed == b.reach.needed && a.reach.sizes == b.reach.sizes;
}

TEST(cells_are_the_same_with_any_threads_and_kernel_and_after_loading) {
  for (const Metric metric : kMetrics) {
    const auto make = [&](uint32_t threads, const Kernel& kernel) {
      auto cells = std::make_unique<Cells>(metric, 8, 0.9, threads, kernel);
      Random random(testing::base_seed());
      Vector rows;
      for (int i = 0; i < 2500; ++i) {
        const Vector x = clustered(random, 8, 0, 12, 2);
        rows.insert(rows.end(), x.begin(), x.end());
      }
      std::copy_n(rows.begin(), 8 * 20, rows.end() - 8 * 20);  // equal vectors
      cells->add(range(0, 2500), rows, nullptr);
      return cells;
    };
    const auto first = make(1, kernels().front());
    const Cells::State before = first->state();
    Cells loaded(metric, 8, 0.9, 1);
    loaded.load(before, first->vectors_of(before.slots), nullptr);
    EXPECT(same(loaded.state(), before));
    const Random random(testing::base_seed() + 1);
    const Cells::State after = changed(*first, random, 2500);
    first->audit();
    EXPECT(same(changed(loaded, random, 2500), after));
    loaded.audit();
    for (const Kernel& kernel : kernels()) {
      const auto other = make(3, kernel);
      EXPECT(same(other->state(), before));
      EXPECT(same(changed(*other, random, 2500), after));
    }
    const Vector queries = [&] {
      const Vec<float> rows = first->vectors_of(range(2600, 3000));
      return Vector(rows.begin(), rows.end());
    }();
    const Answer answer = ask(*first, queries, 8, 7);
    EXPECT(ask(loaded, queries, 8, 7) == answer);
    for (size_t i = 0; i < 400; i += 37) {  // alone
      const auto at = static_cast<ptrdiff_t>(i);
      const Answer own =
          ask(*first, {queries.begin() + 8 * at, queries.begin() + 8 * (at + 1)}, 8, 7);
      EXPECT(std::equal(own.slots.begin(), own.slots.end(), answer.slots.begin() + 7 * at));
    }
  }
}

TEST(cells_reject_what_is_wrong) {
  EXPECT_THROWS(std::invalid_argument, Cells(Metric::kCosine, 2, 0, 1));
  EXPECT_THROWS(std::invalid_argument, Cells(Metric::kCosine, 2, 1.5, 1));
  EXPECT_THROWS(std::invalid_argument, Cells(Metric::kCosine, 2, NAN, 1));
  Cells cells(Metric::kEuclidean, 2, 0.9, 1);
  cells.add(std::vector<int64_t>{3, 5}, Vector{0, 0, 1, 1}, nullptr);
  const auto add = [&](std::vector<int64_t> to, Vector rows) { cells.add(to, rows, nullptr); };
  const auto remove = [&](std::vector<int64_t> from) { cells.remove(from, nullptr); };
  EXPECT_THROWS(SlotError, add({7, 3}, {0, 0, 0, 0}));
  EXPECT_THROWS(SlotError, add({7, 7}, {0, 0, 0, 0}));
  EXPECT_THROWS(std::invalid_argument, add({8}, {0, NAN}));
  EXPECT_THROWS(SlotError, remove({4}));
  EXPECT_THROWS(SlotError, remove({3, 3}));
  EXPECT_THROWS(std::invalid_argument, ask(cells, {NAN, 0}, 2, 1));
  EXPECT(ask(cells, {1, 1}, 2, 3) == (Answer{{5, 3, -1}, {0, std::sqrt(2.0), INFINITY}}));

  const Cells::State state = cells.state();
  const Vec<float> rows = cells.vectors_of(state.slots);
  const auto load = [&](auto change) {
    Cells::State wrong = state;
    change(wrong);
    Cells(Metric::kEuclidean, 2, 0.9, 1).load(wrong, rows, nullptr);
  };
  load([](Cells::State&) {});
  EXPECT_THROWS(std::invalid_argument, load([](Cells::State& s) { s.sizes[0] = 3; }));
  EXPECT_THROWS(std::invalid_argument, load([](Cells::State& s) { s.sizes[0] = -1; }));
  EXPECT_THROWS(std::invalid_argument, load([](Cells::State& s) { s.sizes[0] = 1; }));
  EXPECT_THROWS(SlotError, load([](Cells::State& s) { s.slots[0] = s.slots[1]; }));
  EXPECT_THROWS(std::invalid_argument, load([](Cells::State& s) { s.centres[1] = NAN; }));
  EXPECT_THROWS(std::invalid_argument, load([](Cells::State& s) { s.extents[0] = -1; }));
  EXPECT_THROWS(std::invalid_argument, load([](Cells::State& s) { s.unit = 3; }));
  EXPECT_THROWS(std::invalid_argument, load([](Cells::State& s) { s.reach.count = 7; }));
}

TEST(cells_survive_every_failed_allocation) {
  Random random(testing::base_seed());
  World world(Metric::kEuclidean, 3, 0.9);
  std::vector<Vector> vectors;
  for (int i = 0; i < 500; ++i) vectors.push_back(clustered(random, 3, 0, 5, 2));
  world.add(range(0, 500), vectors);
  int64_t top = 500;
  for (int step = 0; step < 60; ++step) {
    const size_t before = world.cells.size();
    const Vector x = clustered(random, 3, 0, 5, 2);
    const std::vector<int64_t> slot = {top++};
    // An error may come after the change: the size tells.
    for (int64_t allowed = 0; world.cells.size() == before; ++allowed) {
      fail_allocation(allowed);
      try {
        world.cells.add(slot, x, nullptr);
      } catch (const std::bad_alloc&) {
        fail_allocation(-1);
        EXPECT(world.cells.intact());
        if (world.cells.size() == before) world.recall(random, 2, 4);
      }
      fail_allocation(-1);
    }
    world.scan.add(slot, x, nullptr);
    world.owner->held[slot[0]] = x;
    EXPECT_EQ(world.cells.size(), before + 1);
    world.recall(random, 2, 4);
  }
  const std::vector<int64_t> leaving = world.some_slots(random, 0.8);
  const size_t before = world.cells.size();
  for (int64_t allowed = 0; world.cells.size() == before; ++allowed) {
    fail_allocation(allowed);
    try {
      world.cells.remove(leaving, nullptr);
    } catch (const std::bad_alloc&) {
    }
    fail_allocation(-1);
  }
  EXPECT_EQ(world.cells.size(), before - leaving.size());
  world.scan.remove(leaving, nullptr);
  for (const int64_t slot : leaving) world.owner->held.erase(slot);
  world.recall(random, 5, 10);
}

}  // namespace
}  // namespace dynhac
