// Points by slot and their graph, against plain maps, through random batches that may fail.

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/memory.h"
#include "core/points/point_graph.h"
#include "core/points/point_table.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

constexpr size_t kDimension = 3;
constexpr double kResolution = 0x1p-32;

using Ids = std::vector<int64_t>;
using Pair = std::pair<int64_t, int64_t>;

struct Point {
  int64_t slot, arrival;
  std::vector<float> vector;
  int64_t time = 0;  // its order
};

struct Update {
  Ids leaving;  // keys
  Ids keys;
  std::vector<float> vectors;
  Ids times;                     // their orders
  std::map<Pair, double> edges;  // between keys
};

template <class T>
std::vector<T> plain(const Vec<T>& values) {
  return {values.begin(), values.end()};
}

struct PointWorld {
  explicit PointWorld(Times kind = Times::kNone) : table(kDimension, kind) {}

  Engine engine{0.1, 0.0, kResolution, 1};
  PointTable table;
  std::map<int64_t, Point> points;  // by key
  std::map<Pair, double> edges;
  int64_t arrivals = 0, next_id = 0;
  std::optional<int64_t> latest;

  int64_t random_time(Random& random) const {
    const int64_t time = random.below(20) - 10;
    return table.kind() == Times::kFloats ? order_of(0.5 * static_cast<double>(time)) : time;
  }

  // The lowest slots that are free before the update.
  Ids free_slots(size_t count) const {
    std::set<int64_t> taken;
    for (const auto& [key, point] : points) taken.insert(point.slot);
    Ids slots;
    for (int64_t slot = 0; slots.size() < count; ++slot) {
      if (!taken.contains(slot)) slots.push_back(slot);
    }
    return slots;
  }

  Update random_update(Random& random) const {
    Update update;
    Ids staying;
    for (const auto& [key, point] : points) {
      (random.chance(0.15) ? update.leaving : staying).push_back(key);
    }
    random.shuffle(update.leaving);
    const int64_t count = random.below(5);
    for (int64_t i = 0; i < count; ++i) {
      const bool replaces = i < std::ssize(update.leaving) && random.chance(0.3);
      update.keys.push_back(replaces ? update.leaving[static_cast<size_t>(i)] : next_id + i);
      for (size_t j = 0; j < kDimension; ++j) {
        update.vectors.push_back(static_cast<float>(random.uniform()));
      }
      if (table.kind() != Times::kNone) update.times.push_back(random_time(random));
    }
    staying.insert(staying.end(), update.keys.begin(), update.keys.end());
    for (size_t i = 0; i < 2 * staying.size(); ++i) {
      const auto any = [&] {
        return staying[static_cast<size_t>(random.below(std::ssize(staying)))];
      };
      const Pair pair = std::minmax(any(), any());
      if (pair.first != pair.second && !edges.contains(pair)) {
        update.edges[pair] = 0.25 * static_cast<double>(1 + random.below(8));
      }
    }
    return update;
  }

  Ids slots_of(const Ids& keys) const {
    Ids slots;
    for (const int64_t key : keys) slots.push_back(points.at(key).slot);
    return slots;
  }

  // The edges of an update, between slots; reserved slots are those of its new points.
  WeightedEdges columns(const Update& update, const Ids& reserved) const {
    WeightedEdges columns;
    const auto slot_of = [&](int64_t key) {
      const auto at = std::find(update.keys.begin(), update.keys.end(), key);
      if (at == update.keys.end()) return points.at(key).slot;
      return reserved[static_cast<size_t>(at - update.keys.begin())];
    };
    for (const auto& [pair, weight] : update.edges) {
      columns.u.push_back(slot_of(pair.first));
      columns.v.push_back(slot_of(pair.second));
      columns.weights.push_back(weight);
    }
    return columns;
  }

  void apply(const Update& update) {
    const PointTable::NewPoints coming{update.vectors,
                                       update.times,
                                       {},
                                       arrivals + std::ssize(update.keys),
                                       next_id + std::ssize(update.keys)};
    const Ids reserved = plain(table.reserve(coming));
    EXPECT_EQ(reserved, free_slots(update.keys.size()));
    WeightedEdges edges = columns(update, reserved);
    update_points(engine, table, update.keys, slots_of(update.leaving), edges, nullptr);
    follow(update, reserved);
  }

  void follow(const Update& update, const Ids& reserved) {
    for (const int64_t key : update.leaving) {
      points.erase(key);
      std::erase_if(edges,
                    [&](const auto& e) { return e.first.first == key || e.first.second == key; });
    }
    for (size_t i = 0; i < update.keys.size(); ++i) {
      const float* vector = update.vectors.data() + i * kDimension;
      points[update.keys[i]] = {
          reserved[i], arrivals + static_cast<int64_t>(i), {vector, vector + kDimension}};
      if (update.times.empty()) continue;
      points[update.keys[i]].time = update.times[i];
      latest = std::max(latest.value_or(update.times[i]), update.times[i]);
    }
    edges.insert(update.edges.begin(), update.edges.end());
    arrivals += std::ssize(update.keys);
    next_id += std::ssize(update.keys);
  }

  void compare(const PointTable& other) const {
    EXPECT_EQ(other.size(), points.size());
    EXPECT_EQ(other.next_arrival(), arrivals);
    EXPECT_EQ(other.next_id(), next_id);
    std::map<int64_t, int64_t> by_slot, by_arrival;
    for (const auto& [key, point] : points) {
      by_slot[point.slot] = key;
      by_arrival[point.arrival] = point.slot;
      const Ids slot = {point.slot};
      EXPECT_EQ(plain(other.find(Ids{key})), slot);
      EXPECT_EQ(plain(other.keys_of(slot)), Ids{key});
      EXPECT_EQ(plain(other.vectors_of(slot)), point.vector);
      EXPECT_EQ(other.arrival(point.slot), point.arrival);
      EXPECT_EQ(plain(other.times_of(slot)), Ids{point.time});
    }
    Ids used, in_order;
    for (const auto& [slot, key] : by_slot) used.push_back(slot);
    for (const auto& [arrival, slot] : by_arrival) in_order.push_back(slot);
    EXPECT_EQ(plain(other.used()), used);
    EXPECT_EQ(plain(other.in_order()), in_order);
    for (int64_t slot = -1; slot < 60; ++slot) {
      if (!by_slot.contains(slot)) EXPECT_EQ(other.arrival(slot), PointTable::kFree);
    }
    EXPECT_EQ(plain(other.find(Ids{next_id, -5})), (Ids{-1, -1}));
  }

  // Also of a table that has not been asked for its oldest points before.
  void compare_oldest(Random& random) {
    EXPECT(table.latest() == latest);
    std::vector<Point> by_age;
    Ids but = {1'000'000};
    for (const auto& [key, point] : points) {
      if (random.chance(0.2)) {
        but.push_back(point.slot);
      } else {
        by_age.push_back(point);
      }
    }
    random.shuffle(but);
    std::sort(by_age.begin(), by_age.end(), [](const Point& a, const Point& b) {
      return std::tie(a.time, a.arrival) < std::tie(b.time, b.arrival);
    });
    const auto count = static_cast<size_t>(random.below(std::ssize(points) + 3));
    std::optional<int64_t> before;
    if (random.chance(0.5)) before = random_time(random);
    Ids expected;
    for (const Point& point : by_age) {
      if (expected.size() < count || (before && point.time < *before)) {
        expected.push_back(point.slot);
      }
    }
    EXPECT_EQ(plain(table.oldest(count, before, but)), expected);
    PointTable again(kDimension, table.state());
    EXPECT_EQ(plain(again.oldest(count, before, but)), expected);
  }

  // Ints become floats, or floats that are ints again.
  void recode(Times kind) {
    const auto recoded = [&](int64_t order) {
      return kind == Times::kFloats ? order_of(static_cast<double>(order))
                                    : static_cast<int64_t>(time_of(order));
    };
    table.recode(kind);
    latest.reset();
    for (auto& [key, point] : points) {
      point.time = recoded(point.time);
      latest = std::max(latest.value_or(point.time), point.time);
    }
  }

  void compare_engine() const {
    const auto [keys, list] = engine.edges_with_keys();
    EXPECT_EQ(keys.size(), points.size());
    std::map<Pair, double> found;
    for (size_t i = 0; i < list.u.size(); ++i) {
      const Pair pair =
          std::minmax(keys[static_cast<size_t>(list.u[i])], keys[static_cast<size_t>(list.v[i])]);
      found[pair] = static_cast<double>(list.w[i]) * kResolution;
    }
    EXPECT(found == edges);
  }

  Ids few(const Update& update, int64_t enough) const {
    const std::set<int64_t> leaving(update.leaving.begin(), update.leaving.end());
    std::map<int64_t, int64_t> degree;
    std::set<int64_t> losers;
    for (const auto& [pair, weight] : edges) {
      const bool first = leaving.contains(pair.first), second = leaving.contains(pair.second);
      if (first && !second) losers.insert(pair.second);
      if (second && !first) losers.insert(pair.first);
      if (!first && !second) ++degree[pair.first], ++degree[pair.second];
    }
    for (const auto& [pair, weight] : update.edges) ++degree[pair.first], ++degree[pair.second];
    Ids slots;
    for (const int64_t key : losers) {
      if (degree[key] < enough) slots.push_back(points.at(key).slot);
    }
    std::sort(slots.begin(), slots.end());
    return slots;
  }
};

TEST(points_through_random_updates) {
  for (uint64_t round = 0; round < 60; ++round) {
    Random random(testing::base_seed() + round);
    PointWorld world(static_cast<Times>(round % 3));
    for (int i = 0; i < 40; ++i) {
      const Update update = world.random_update(random);
      const int64_t enough = 1 + random.below(6);
      const Ids leaving = world.slots_of(update.leaving);
      const WeightedEdges edges = world.columns(update, world.free_slots(update.keys.size()));
      EXPECT_EQ(plain(short_of_edges(world.engine, world.table, leaving, edges, enough)),
                world.few(update, enough));
      world.apply(update);
      world.compare(world.table);
      world.compare_engine();
      if (i > 20 || random.chance(0.1)) world.compare_oldest(random);
    }
    world.compare(PointTable(kDimension, world.table.state()));
  }
}

TEST(points_after_a_failed_allocation) {
  for (int64_t after = 0; after < 60; ++after) {
    Random random(testing::base_seed() + static_cast<uint64_t>(after));
    PointWorld world(static_cast<Times>(after % 3));
    for (int i = 0; i < 10; ++i) world.apply(world.random_update(random));
    if (after % 2 == 0) world.compare_oldest(random);
    const Update update = world.random_update(random);
    fail_allocation(after);
    try {
      world.apply(update);
      fail_allocation(-1);
    } catch (const std::bad_alloc&) {
      fail_allocation(-1);
      world.compare(world.table);
      world.compare_engine();
      world.apply(update);
    }
    world.compare(world.table);
    world.compare_engine();
    world.compare_oldest(random);
  }
}

TEST(points_that_stay_for_a_while) {
  // Only the last few are there, but for one that stays: the queue is cleaned around it.
  PointTable table(1);
  Engine engine(0.1, 0.0, kResolution, 1);
  std::vector<int64_t> window;
  for (int64_t i = 0; i < 2000; ++i) {
    const std::vector<float> vector(1, 0.0f);
    Ids leaving;
    if (window.size() == 5) {
      leaving = plain(table.oldest(1, {}, Ids{0}));
      EXPECT_EQ(leaving, Ids{window[1]});
      window.erase(window.begin() + 1);
    }
    window.push_back(table.reserve({vector, {}, {}, i + 1, i + 1})[0]);
    WeightedEdges none;
    update_points(engine, table, Ids{i}, leaving, none, nullptr);
    EXPECT_EQ(plain(table.oldest(9, {}, {})), window);
    EXPECT(table.bytes() < 10'000);
  }
}

TEST(points_whose_times_become_floats) {
  for (uint64_t round = 0; round < 20; ++round) {
    Random random(testing::base_seed() + round);
    PointWorld world(Times::kInts);
    for (int i = 0; i < 30; ++i) {
      world.apply(world.random_update(random));
      if (random.chance(0.3)) world.compare_oldest(random);
      if (i == 15) {
        world.recode(Times::kFloats);
        world.compare(world.table);
        world.recode(Times::kInts);
        world.compare(world.table);
      }
      if (i == 20) world.recode(Times::kFloats);
      world.compare_oldest(random);
    }
    world.compare(world.table);
  }
}

TEST(orders_of_floats) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double times[] = {-infinity, -1e300, -2.5, -1.0,  -5e-324,
                          0.0,       5e-324, 1.0,  1e300, infinity};
  for (const double a : times) {
    EXPECT_EQ(time_of(order_of(a)), a);
    for (const double b : times) EXPECT_EQ(order_of(a) < order_of(b), a < b);
  }
  EXPECT_EQ(order_of(-0.0), order_of(0.0));
}

TEST(points_that_are_given_back) {
  Random random(testing::base_seed());
  PointWorld world;
  for (int i = 0; i < 10; ++i) world.apply(world.random_update(random));
  const std::vector<float> vectors(5 * kDimension, 1.0f);
  const PointTable::NewPoints coming{vectors, {}, {}, 1000, 1000};
  const Vec<int64_t> slots = world.table.reserve(coming);
  world.compare(world.table);
  EXPECT_EQ(world.table.reserve(coming), slots);  // the others are given back by it
  world.table.give_back();
  world.table.give_back();
  EXPECT_EQ(world.table.reserve(coming), slots);
  world.table.give_back();
  world.compare(world.table);
  world.apply(world.random_update(random));
  world.compare(world.table);
}

TEST(points_that_are_rejected) {
  Random random(testing::base_seed());
  PointWorld world;
  while (world.points.size() < 5) world.apply(world.random_update(random));
  const int64_t present = world.points.begin()->first;
  const std::vector<float> vector(kDimension, 1.0f);
  const auto reject = [&]<class Exception>(const Ids& keys, const Ids& leaving, WeightedEdges edges,
                                           Exception) {
    world.table.reserve({vector, {}, {}, 100, 100});
    EXPECT_THROWS(Exception,
                  update_points(world.engine, world.table, keys, leaving, edges, nullptr));
    world.table.give_back();
    world.compare(world.table);
    world.compare_engine();
  };
  const Ids slot = world.slots_of({present});
  reject({present}, {}, {}, BatchError("", 0));              // is there already
  reject({500, 501}, {}, {}, std::invalid_argument(""));     // too many
  reject({500}, {-1}, {}, std::invalid_argument(""));        // nobody
  reject({500}, {slot[0], slot[0]}, {}, BatchError("", 0));  // twice
  reject({500}, {}, {{slot[0]}, {9999}, {1.0}}, std::out_of_range(""));
  reject({500}, {}, {{slot[0]}, {slot[0]}, {1.0}}, BatchError("", 0));  // a loop
  const int64_t next = world.table.next_arrival();
  for (const Ids& arrivals : {Ids{next, next}, Ids{next + 1, next}, Ids{next - 1, next}}) {
    const std::vector<float> vectors(2 * kDimension, 1.0f);
    EXPECT_THROWS(std::invalid_argument, world.table.reserve({vectors, {}, arrivals, 100, 100}));
    world.compare(world.table);
  }
  EXPECT_THROWS(std::invalid_argument, world.table.reserve({vector, Ids{5}, {}, 100, 100}));
  PointTable timed(kDimension, Times::kInts);
  EXPECT_THROWS(std::invalid_argument, timed.reserve({vector, {}, {}, 100, 100}));
  EXPECT_THROWS(std::out_of_range, world.table.keys_of(Ids{-1}));
  EXPECT_THROWS(std::out_of_range, world.table.vectors_of(Ids{9999}));
}

TEST(points_of_a_state_that_is_not_one) {
  PointWorld world;
  Random random(testing::base_seed());
  while (world.points.size() < 5) world.apply(world.random_update(random));
  using State = PointTable::State;
  const auto reject = [&](auto damage) {
    State state = world.table.state();
    damage(state);
    EXPECT_THROWS(std::invalid_argument, PointTable(kDimension, state));
  };
  const auto used = world.table.used();
  const auto a = static_cast<size_t>(used[0]), b = static_cast<size_t>(used[1]);
  reject([&](State& s) { s.keys[a] = s.keys[b]; });
  reject([&](State& s) { s.arrival[a] = s.arrival[b]; });
  reject([&](State& s) { s.next_arrival = s.arrival[a]; });
  reject([&](State& s) { s.arrival.pop_back(); });
  reject([&](State& s) { s.vectors.pop_back(); });
  reject([&](State& s) { s.times.push_back(0); });
  reject([&](State& s) { s.kind = Times::kInts; });
}

}  // namespace
}  // namespace dynhac
