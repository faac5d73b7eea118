// The scan against a sort of all distances in double, through random updates.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/neighbors/scan.h"
#include "core/tests/testing.h"
#include "core/tests/vector_shapes.h"

namespace dynhac {
namespace {

using testing::Shape;
using testing::Vector;

constexpr Metric kMetrics[] = {Metric::kEuclidean, Metric::kCosine, Metric::kInnerProduct};
constexpr int64_t kShapes = static_cast<int64_t>(Shape::kCount);

// Written down independently.
double pairwise(const std::vector<double>& terms, size_t begin, size_t count) {
  if (count > 128) {
    const size_t half = count / 2 - count / 2 % 8;
    return pairwise(terms, begin, half) + pairwise(terms, begin + half, count - half);
  }
  double total = 0;
  size_t at = begin;
  if (count > 8) {
    std::vector<double> sums(8);
    for (; at + 8 <= begin + count; at += 8) {
      for (size_t i = 0; i < 8; ++i) sums[i] += terms[at + i];
    }
    for (size_t width = 8; width > 1; width /= 2) {
      for (size_t i = 0; i < width / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    }
    total = sums[0];
  }
  for (; at < begin + count; ++at) total += terms[at];
  return total;
}

double sum_of(const Vector& a, const Vector& b, bool squares) {
  std::vector<double> terms;
  for (size_t j = 0; j < a.size(); ++j) {
    const double x = a[j], y = b[j];
    terms.push_back(squares ? (x - y) * (x - y) : x * y);
  }
  return pairwise(terms, 0, terms.size());
}

Vector unit(Vector x) {
  const double length = std::sqrt(sum_of(x, x, false));
  if (length > 0) {
    for (float& v : x) v = static_cast<float>(v / length);
  }
  return x;
}

double distance_of(Metric metric, Vector a, Vector b) {
  if (metric == Metric::kCosine) {
    a = unit(std::move(a));
    b = unit(std::move(b));
  }
  if (metric == Metric::kEuclidean) return std::sqrt(sum_of(a, b, true));
  const double product = sum_of(a, b, false);
  if (metric == Metric::kInnerProduct) return 0.0 - product;
  const double scale = std::sqrt(sum_of(a, a, false) * sum_of(b, b, false));
  return scale == 0 ? 1 : std::max(1 - product / scale, 0.0);
}

struct Answer {
  std::vector<int64_t> slots;
  std::vector<double> distances;
  bool operator==(const Answer&) const = default;
};

Vector flat(const std::vector<Vector>& vectors) {
  Vector rows;
  for (const Vector& x : vectors) rows.insert(rows.end(), x.begin(), x.end());
  return rows;
}

Answer ask(Scan& scan, const std::vector<Vector>& queries, size_t k) {
  Answer answer{std::vector<int64_t>(queries.size() * k), std::vector<double>(queries.size() * k)};
  scan.query(flat(queries), k, answer.slots, answer.distances, nullptr);
  return answer;
}

struct Owner : VectorRows {
  const float* row(int64_t slot) const override { return held.at(slot).data(); }
  std::map<int64_t, Vector> held;
};

struct World {
  World(Metric metric, size_t d, uint32_t threads, const Kernel& kernel, bool shared)
      : metric(metric), scan(metric, d, threads, kernel), owner(std::make_shared<Owner>()) {
    if (shared) scan.read_vectors_from(owner);
  }

  void add(const std::vector<int64_t>& slots, const std::vector<Vector>& vectors) {
    for (size_t i = 0; i < slots.size(); ++i) owner->held[slots[i]] = vectors[i];
    scan.add(slots, flat(vectors), nullptr);
  }

  void remove(const std::vector<int64_t>& slots) {
    scan.remove(slots, nullptr);
    for (const int64_t slot : slots) owner->held.erase(slot);
  }

  Answer expected(const std::vector<Vector>& queries, size_t k) const {
    Answer answer;
    for (const Vector& q : queries) {
      std::vector<std::pair<double, int64_t>> all;
      for (const auto& [slot, x] : owner->held) all.emplace_back(distance_of(metric, q, x), slot);
      std::sort(all.begin(), all.end());
      all.resize(k, {INFINITY, -1});
      for (const auto& [distance, slot] : all) {
        answer.slots.push_back(slot);
        answer.distances.push_back(distance);
      }
    }
    return answer;
  }

  void compare(const std::vector<Vector>& queries, size_t k) {
    EXPECT_EQ(scan.size(), owner->held.size());
    EXPECT(ask(scan, queries, k) == expected(queries, k));
  }

  Metric metric;
  Scan scan;
  std::shared_ptr<Owner> owner;
};

// Some shapes, mixed.
std::vector<Vector> some_vectors(Random& random, size_t count, size_t d, Shape shape) {
  std::vector<Vector> vectors;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && random.chance(0.1)) {
      vectors.push_back(random.pick(vectors));  // equal vectors
    } else {
      const Shape own = random.chance(0.1) ? static_cast<Shape>(random.below(kShapes)) : shape;
      vectors.push_back(testing::random_vector(random, own, d));
    }
  }
  return vectors;
}

void random_updates(Random& random, Metric metric, Shape shape, size_t d, const Kernel& kernel) {
  World world(metric, d, 1 + static_cast<uint32_t>(random.below(3)), kernel, random.chance(0.5));
  for (int step = 0; step < 8; ++step) {
    if (random.chance(0.35) && !world.owner->held.empty()) {
      std::vector<int64_t> leaving;
      for (const auto& [slot, x] : world.owner->held) {
        if (random.chance(0.4)) leaving.push_back(slot);
      }
      random.shuffle(leaving);
      world.remove(leaving);
    } else {
      std::vector<int64_t> slots;
      const auto count = random.chance(0.5) ? 1 : random.below(d > 200 ? 20 : 90);
      for (int64_t slot = 0; std::ssize(slots) < count; ++slot) {
        if (!world.owner->held.contains(slot)) slots.push_back(slot);
      }
      random.shuffle(slots);
      world.add(slots, some_vectors(random, slots.size(), d, shape));
    }
    std::vector<Vector> queries = some_vectors(random, 3, d, shape);
    for (const auto& [slot, x] : world.owner->held) {
      if (random.chance(0.1)) queries.push_back(x);
    }
    world.compare(queries, 1 + random.next() % 12);
  }
}

TEST(scan_through_random_updates) {
  const size_t dimensions[] = {1, 2, 3, 7, 8, 9, 16, 33, 64, 130};
  for (int64_t shape = 0; shape < kShapes; ++shape) {
    for (const Metric metric : kMetrics) {
      for (int run = 0; run < 4; ++run) {
        Random random(testing::base_seed() + static_cast<uint64_t>(shape * 100 + run));
        const Kernel& kernel = kernels()[static_cast<size_t>(run) % kernels().size()];
        random_updates(random, metric, static_cast<Shape>(shape), dimensions[random.below(10)],
                       kernel);
      }
    }
  }
}

TEST(scan_in_many_dimensions) {
  for (const size_t d : {384u, 1000u, 4096u}) {
    for (const Metric metric : kMetrics) {
      Random random(testing::base_seed() + d);
      random_updates(random, metric, static_cast<Shape>(random.below(kShapes)), d,
                     kernels().front());
    }
  }
}

TEST(scan_gives_the_same_answers_with_any_threads_and_kernel) {
  for (const Metric metric : kMetrics) {
    Random random(testing::base_seed());
    const std::vector<Vector> vectors = some_vectors(random, 500, 20, Shape::kNearTies);
    std::vector<int64_t> slots;
    for (int64_t slot = 0; slot < 500; ++slot) slots.push_back(slot);
    Answer first;
    for (const Kernel& kernel : kernels()) {
      for (const uint32_t threads : {1u, 2u, 3u, 7u}) {
        Scan scan(metric, 20, threads, kernel);
        scan.add(slots, flat(vectors), nullptr);
        const Answer answer = ask(scan, vectors, 11);
        if (first.slots.empty()) first = answer;
        EXPECT(answer == first);
      }
    }
  }
}

TEST(scan_of_many_equal_vectors) {
  World world(Metric::kEuclidean, 5, 1, kernels().front(), true);
  std::vector<int64_t> slots;
  for (int64_t slot = 0; slot < 3000; ++slot) slots.push_back(slot);
  const Vector first = {1, 2, 3, 4, 5}, second = {0, -0.0f, 0, 0, 0}, third = {-0.0f, 0, 0, 0, 0};
  std::vector<Vector> vectors(slots.size(), first);
  for (size_t i = 0; i < vectors.size(); i += 3) vectors[i] = i % 2 == 0 ? second : third;
  Random random(testing::base_seed());
  random.shuffle(slots);
  world.add(slots, vectors);
  world.compare({first, second, third, {1, 1, 1, 1, 1}}, 40);
  while (!slots.empty()) {
    std::vector<int64_t> leaving(slots.end() - std::min<ptrdiff_t>(std::ssize(slots), 700),
                                 slots.end());
    slots.resize(slots.size() - leaving.size());
    world.remove(leaving);
    world.compare({first, second}, 40);
  }
}

// Counts the distances that are computed, on one thread.
size_t counted = 0;
Kernel counting_kernel() {
  Kernel kernel = kernels().back();
  kernel.squares = [](const float* a, const float* b, size_t count) {
    ++counted;
    return kernels().back().squares(a, b, count);
  };
  kernel.products = [](const float* a, const float* b, size_t count) {
    ++counted;
    return kernels().back().products(a, b, count);
  };
  return kernel;
}

TEST(scan_computes_few_distances_wherever_the_vectors_lie) {
  const Kernel kernel = counting_kernel();
  for (const size_t d : {16u, 64u}) {
    Random random(testing::base_seed());
    World world(Metric::kEuclidean, d, 1, kernel, false);
    for (const float offset : {0.0f, 3000.0f, 3000.0f}) {
      for (int64_t first = 0; first < 2000; first += 250) {
        std::vector<int64_t> slots;
        std::vector<Vector> vectors;
        for (int64_t slot = first; slot < first + 250; ++slot) {
          slots.push_back(slot);
          vectors.push_back(testing::random_vector(random, Shape::kSpread, d));
          for (float& v : vectors.back()) v += offset;
        }
        if (offset > 0) world.remove(slots);  // the new ones replace them
        world.add(slots, vectors);
      }
    }
    counted = 0;
    ask(world.scan, {world.owner->held[7]}, 10);
    EXPECT(counted < 60);
  }
}

TEST(scan_computes_the_distance_of_equal_vectors_once) {
  const Kernel kernel = counting_kernel();
  Random random(testing::base_seed());
  std::vector<Vector> some;
  for (int i = 0; i < 30; ++i) some.push_back(testing::random_vector(random, Shape::kSpread, 16));
  World world(Metric::kEuclidean, 16, 1, kernel, false);
  std::vector<int64_t> slots;
  std::vector<Vector> vectors;
  for (int64_t slot = 0; slot < 600; ++slot) {
    slots.push_back(slot);
    vectors.push_back(random.pick(some));
  }
  world.add(slots, vectors);
  counted = 0;
  ask(world.scan, vectors, 40);
  EXPECT(counted <= 600 * 30);
  world.compare(vectors, 40);
}

TEST(scan_computes_no_distances_that_are_all_the_same) {
  const Kernel kernel = counting_kernel();
  Random random(testing::base_seed());
  World world(Metric::kInnerProduct, 16, 1, kernel, false);
  std::vector<int64_t> slots;
  for (int64_t slot = 0; slot < 400; ++slot) slots.push_back(399 - slot);
  world.add(slots, some_vectors(random, slots.size(), 16, Shape::kZeros));
  const std::vector<Vector> zero = {Vector(16)};
  counted = 0;
  ask(world.scan, zero, 10);
  EXPECT_EQ(counted, 0u);
  world.compare(zero, 10);
  world.compare(zero, 500);
}

TEST(scan_rejects_what_is_wrong_and_stays_as_it_was) {
  Scan scan(Metric::kEuclidean, 2, 1);
  const std::vector<int64_t> slots = {3, 5};
  scan.add(slots, Vector{0, 0, 1, 1}, nullptr);
  const auto add = [&](std::vector<int64_t> to, Vector rows) { scan.add(to, rows, nullptr); };
  const auto remove = [&](std::vector<int64_t> from) { scan.remove(from, nullptr); };
  EXPECT_THROWS(SlotError, add({7, 3}, {0, 0, 0, 0}));
  EXPECT_THROWS(SlotError, add({7, 7}, {0, 0, 0, 0}));
  EXPECT_THROWS(SlotError, add({-1}, {0, 0}));
  EXPECT_THROWS(SlotError, add({int64_t{1} << 40}, {0, 0}));
  EXPECT_THROWS(std::invalid_argument, add({8}, {0, NAN}));
  EXPECT_THROWS(std::invalid_argument, add({8}, {INFINITY, 0}));
  EXPECT_THROWS(std::invalid_argument, add({8}, {0}));
  EXPECT_THROWS(SlotError, remove({4}));
  EXPECT_THROWS(SlotError, remove({-4}));
  EXPECT_THROWS(SlotError, remove({3, 3}));
  EXPECT_THROWS(std::invalid_argument, ask(scan, {{NAN, 0}}, 1));
  EXPECT_EQ(scan.size(), 2u);
  EXPECT(ask(scan, {{1, 1}}, 3) == (Answer{{5, 3, -1}, {0, std::sqrt(2.0), INFINITY}}));
  EXPECT(ask(scan, {}, 3) == Answer{});
  EXPECT(ask(scan, {{1, 1}}, 0) == Answer{});
}

TEST(scan_survives_every_failed_allocation) {
  for (const bool shared : {false, true}) {
    Random random(testing::base_seed());
    World world(Metric::kCosine, 6, 1, kernels().front(), shared);
    int64_t top = 0;
    for (int step = 0; step < 12; ++step) {
      const std::vector<Vector> vectors =
          some_vectors(random, 1 + random.next() % 40, 6, Shape::kLattice);
      std::vector<int64_t> slots;
      for (size_t i = 0; i < vectors.size(); ++i) slots.push_back(top++);
      const Vector rows = flat(vectors);
      const Answer before = ask(world.scan, vectors, 5);
      const std::map<int64_t, Vector> held = world.owner->held;
      for (size_t i = 0; i < slots.size(); ++i) world.owner->held[slots[i]] = vectors[i];
      for (int64_t after = 0;; ++after) {
        fail_allocation(after);
        try {
          world.scan.add(slots, rows, nullptr);
          break;
        } catch (const std::bad_alloc&) {
          EXPECT_EQ(world.scan.size(), held.size());
          EXPECT(ask(world.scan, vectors, 5) == before);
        }
      }
      fail_allocation(-1);
      world.compare(vectors, 5);
      for (int64_t after = 0;; ++after) {
        fail_allocation(after);
        try {
          ask(world.scan, vectors, 5);
          break;
        } catch (const std::bad_alloc&) {
        }
      }
      fail_allocation(-1);
      if (step % 3 != 2) continue;
      std::vector<int64_t> leaving;
      for (const auto& [slot, x] : world.owner->held) {
        if (random.chance(0.6)) leaving.push_back(slot);
      }
      for (int64_t after = 0;; ++after) {
        fail_allocation(after);
        try {
          world.scan.remove(leaving, nullptr);
          break;
        } catch (const std::bad_alloc&) {
          EXPECT_EQ(world.scan.size(), world.owner->held.size());
        }
      }
      fail_allocation(-1);
      for (const int64_t slot : leaving) world.owner->held.erase(slot);
      world.compare(vectors, 5);
    }
  }
}

// A poll that stops the computation at some call.
struct Stop : Poll {
  explicit Stop(int64_t after) : left(after) {}
  void check() override {
    if (left-- == 0) throw std::runtime_error("stopped");
  }
  int64_t left;
};

TEST(scan_stays_as_it_was_when_it_is_stopped) {
  Random random(testing::base_seed());
  World world(Metric::kEuclidean, 30, 2, kernels().front(), false);
  std::vector<int64_t> slots;
  for (int64_t slot = 0; slot < 3000; ++slot) slots.push_back(slot);
  const std::vector<Vector> vectors = some_vectors(random, slots.size(), 30, Shape::kSpread);
  world.add({5000}, {vectors[0]});
  const std::vector<Vector> queries(vectors.begin(), vectors.begin() + 5);
  int64_t stops = 0;
  for (;; ++stops) {
    Stop stop(stops);
    try {
      world.scan.add(slots, flat(vectors), &stop);
      break;
    } catch (const std::runtime_error&) {
      world.compare(queries, 3);
    }
  }
  EXPECT(stops > 0);
  for (size_t i = 0; i < slots.size(); ++i) world.owner->held[slots[i]] = vectors[i];
  world.compare(queries, 3);
}

}  // namespace
}  // namespace dynhac
