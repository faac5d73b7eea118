// Points by slot, against plain maps, through random batches that may fail.

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "core/points/point_table.h"
#include "core/tests/plain.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using testing::fails_at;
using testing::Ids;
using testing::plain;

constexpr size_t kDimension = 3;

struct Point {
  int64_t slot, arrival;
  std::vector<float> vector;
  int64_t time = 0;  // its order
};

struct Update {
  Ids leaving;  // keys
  Ids keys;
  std::vector<float> vectors;
  Ids times;     // their orders
  Ids arrivals;  // some numbers may be skipped
  int64_t next_arrival, next_id;

  PointTable::NewPoints view() const { return {vectors, times, arrivals, next_arrival, next_id}; }
};

// A table, and the same points in a map.
struct TableWorld {
  explicit TableWorld(TimeKind kind = TimeKind::kNone) : table(kDimension, kind) {}

  PointTable table;
  std::map<int64_t, Point> points;  // by key
  int64_t next_arrival = 0, next_id = 0;

  bool timed() const { return table.kind() != TimeKind::kNone; }
  int64_t order(double time) const {
    return table.kind() == TimeKind::kFloats ? order_of(time) : static_cast<int64_t>(time);
  }
  double time(int64_t order) const {
    return table.kind() == TimeKind::kFloats ? time_of(order) : static_cast<double>(order);
  }
  double random_time(Random& random) const {
    const auto time = static_cast<double>(random.below(20) - 10);
    return table.kind() == TimeKind::kFloats ? 0.5 * time : time;
  }

  // The lowest slots that are free before an update.
  Ids free_slots(size_t count) const {
    std::set<int64_t> taken;
    for (const auto& [key, point] : points) taken.insert(point.slot);
    Ids slots;
    for (int64_t slot = 0; slots.size() < count; ++slot) {
      if (!taken.contains(slot)) slots.push_back(slot);
    }
    return slots;
  }

  Ids slots_of(const Ids& keys) const {
    Ids slots;
    for (const int64_t key : keys) slots.push_back(points.at(key).slot);
    return slots;
  }

  Update random_update(Random& random) const {
    Update update;
    for (const auto& [key, point] : points) {
      if (random.chance(0.15)) update.leaving.push_back(key);
    }
    random.shuffle(update.leaving);
    update.next_arrival = next_arrival;
    const int64_t count = random.below(5);
    for (int64_t i = 0; i < count; ++i) {
      const bool replaces = i < std::ssize(update.leaving) && random.chance(0.3);
      update.keys.push_back(replaces ? update.leaving[static_cast<size_t>(i)] : next_id + i);
      for (size_t j = 0; j < kDimension; ++j) {
        update.vectors.push_back(static_cast<float>(random.below(2)));  // many are equal
      }
      if (timed()) update.times.push_back(order(random_time(random)));
      update.next_arrival += random.chance(0.2);
      update.arrivals.push_back(update.next_arrival++);
    }
    update.next_id = next_id + count;
    return update;
  }

  // Changes table and map, or on an exception neither.
  void apply(const Update& update) {
    const Ids leaving = slots_of(update.leaving), expected = free_slots(update.keys.size());
    const Ids slots = plain(table.reserve(update.view(), leaving));
    EXPECT_EQ(slots, expected);
    compare(table);
    table.name(update.keys);
    EXPECT_EQ(plain(table.keys_of(slots)), update.keys);
    table.commit(leaving);
    for (const int64_t key : update.leaving) points.erase(key);
    for (size_t i = 0; i < update.keys.size(); ++i) {
      const float* vector = update.vectors.data() + i * kDimension;
      const int64_t time = update.times.empty() ? 0 : update.times[i];
      points[update.keys[i]] = {slots[i], update.arrivals[i], {vector, vector + kDimension}, time};
    }
    next_arrival = update.next_arrival;
    next_id = update.next_id;
  }

  void compare(const PointTable& other) const {
    EXPECT_EQ(other.size(), points.size());
    EXPECT_EQ(other.next_arrival(), next_arrival);
    EXPECT_EQ(other.next_id(), next_id);
    std::map<int64_t, int64_t> by_slot, by_arrival;
    for (const auto& [key, point] : points) {
      by_slot[point.slot] = key;
      by_arrival[point.arrival] = point.slot;
      const Ids slot = {point.slot};
      EXPECT_EQ(other.find(key), point.slot);
      EXPECT_EQ(plain(other.keys_of(slot)), Ids{key});
      EXPECT_EQ(plain(other.vectors_of(slot)), point.vector);
      EXPECT_EQ(other.arrival(point.slot), point.arrival);
      EXPECT_EQ(other.time(point.slot), point.time);
    }
    Ids used, in_order;
    for (const auto& [slot, key] : by_slot) used.push_back(slot);
    for (const auto& [arrival, slot] : by_arrival) in_order.push_back(slot);
    EXPECT_EQ(plain(other.used()), used);
    EXPECT_EQ(plain(other.in_order()), in_order);
    for (int64_t slot = -1; slot < 60; ++slot) {
      if (!by_slot.contains(slot)) EXPECT_EQ(other.arrival(slot), PointTable::kFree);
    }
    EXPECT_EQ(other.find(next_id), -1);
    EXPECT_EQ(other.find(-5), -1);
  }

  Window random_window(Random& random) const {
    if (random.chance(0.3)) return {};
    const bool floats = table.kind() == TimeKind::kFloats;
    const auto number = [&](double x) {
      return floats ? Number(x) : Number(static_cast<int64_t>(x));
    };
    Window window(std::nullopt, number(static_cast<double>(random.below(12))));
    window.set_clock(number(random_time(random) + static_cast<double>(random.below(10))));
    return window;
  }

  // Also of a table that has not been asked for its oldest points before.
  void compare_oldest(Random& random) {
    std::vector<Point> by_age;
    Ids excluded = {1'000'000};
    for (const auto& [key, point] : points) {
      if (random.chance(0.2)) {
        excluded.push_back(point.slot);
      } else {
        by_age.push_back(point);
      }
    }
    random.shuffle(excluded);
    std::sort(by_age.begin(), by_age.end(), [](const Point& a, const Point& b) {
      return std::tie(a.time, a.arrival) < std::tie(b.time, b.arrival);
    });
    const auto count = static_cast<size_t>(random.below(std::ssize(points) + 3));
    const Window window = random_window(random);
    Ids expected;
    for (const Point& point : by_age) {
      if (expected.size() < count || window.too_old(time_from(table.kind(), point.time))) {
        expected.push_back(point.slot);
      }
    }
    EXPECT_EQ(plain(table.oldest(count, window, excluded)), expected);
    PointTable again(kDimension, table.state());
    EXPECT_EQ(plain(again.oldest(count, window, excluded)), expected);
  }

  // Also of a table that has not been asked for equal points before.
  void compare_equals() {
    PointTable again(kDimension, table.state());
    for (const auto& [key, own] : points) {
      std::map<int64_t, int64_t> by_rank;  // those that arrived before it, the latest first
      for (const auto& [other, point] : points) {
        const bool same = point.vector == own.vector;
        EXPECT_EQ(table.equal(point.slot, own.slot), same);
        const int64_t ago = own.arrival - point.arrival;
        if (same && other != key) by_rank[ago > 0 ? ago : next_arrival - ago] = point.slot;
      }
      Ids expected;
      for (const auto& [rank, slot] : by_rank) {
        if (expected.size() < 3) expected.push_back(slot);
      }
      EXPECT_EQ(plain(table.equals_around(own.slot, 3)), expected);
      EXPECT_EQ(plain(again.equals_around(own.slot, 3)), expected);
    }
  }

  // Ints become floats, or floats that are ints become ints again.
  void recode(TimeKind kind) {
    std::map<int64_t, double> times;
    for (const auto& [key, point] : points) times[key] = time(point.time);
    table.recode(kind);
    EXPECT(table.kind() == kind);
    for (auto& [key, point] : points) point.time = order(times[key]);
  }
};

TEST(point_table_through_random_updates) {
  for (uint64_t round = 0; round < 60; ++round) {
    Random random(testing::base_seed() + round);
    TableWorld world(static_cast<TimeKind>(round % 4));
    for (int i = 0; i < 40; ++i) {
      world.apply(world.random_update(random));
      world.compare(world.table);
      if (i > 20 || random.chance(0.1)) world.compare_oldest(random);
      if (i > 20 || random.chance(0.05)) world.compare_equals();
    }
    world.compare(PointTable(kDimension, world.table.state()));
  }
}

TEST(point_table_after_a_failed_allocation) {
  int64_t failures = 0;
  for (uint64_t round = 0; round < 8; ++round) {
    bool failed = true;
    for (int64_t after = 0; failed; ++after) {
      Random random(testing::base_seed() + round);
      TableWorld world(static_cast<TimeKind>(round % 4));
      for (int i = 0; i < 10; ++i) world.apply(world.random_update(random));
      if (round < 4) world.compare_oldest(random);
      if (round % 2 == 0) world.compare_equals();
      // More points than there is room for.
      Update update = world.random_update(random);
      for (int i = 0; i < 40; ++i) {
        update.keys.push_back(update.next_id++);
        update.arrivals.push_back(update.next_arrival++);
        update.vectors.insert(update.vectors.end(), kDimension, 1.0f);
        if (world.timed()) update.times.push_back(i);
      }
      const Ids leaving = world.slots_of(update.leaving);
      failed = fails_at(after, [&] { world.table.reserve(update.view(), leaving); });
      failures += failed;
      world.compare(world.table);
      if (!failed) world.table.give_back();
      if (round < 6) world.compare_equals();
      world.apply(update);
      world.compare(world.table);
      world.compare_oldest(random);
      world.compare_equals();
    }
  }
  EXPECT(failures > 20);
}

TEST(point_table_oldest_after_a_failed_allocation) {
  bool failed = true;
  for (int64_t after = 0; failed; ++after) {
    Random random(testing::base_seed());
    TableWorld world(TimeKind::kInts);
    for (int i = 0; i < 20; ++i) world.apply(world.random_update(random));
    if (after % 2 == 0) world.compare_oldest(random);
    failed = fails_at(after / 2, [&] { world.table.oldest(100, {}, {}); });
    world.compare(world.table);
    world.compare_oldest(random);
  }
}

TEST(point_table_equal_points_in_the_middle_of_an_update) {
  // The points that leave are left out, the pending ones are there; then all is as it was.
  PointTable table(1);
  const std::vector<float> first(4, 0.0f), more = {-0.0f, 1.0f};
  table.reserve({first, {}, Ids{0, 1, 2, 3}, 4, 4}, {});
  table.name(Ids{0, 1, 2, 3});
  table.commit({});
  for (int round = 0; round < 2; ++round) {  // not asked for equal points before, then asked
    EXPECT_EQ(plain(table.reserve({more, {}, Ids{4, 5}, 6, 6}, Ids{3, 1})), (Ids{4, 5}));
    EXPECT_EQ(plain(table.equals_around(4, 9)), (Ids{2, 0}));
    EXPECT_EQ(plain(table.equals_around(0, 1)), Ids{2});
    EXPECT_EQ(plain(table.equals_around(5, 9)), Ids{});
    table.give_back();
    EXPECT_EQ(plain(table.equals_around(2, 2)), (Ids{1, 0}));
    EXPECT_EQ(plain(table.equals_around(2, 9)), (Ids{1, 0, 3}));
  }
}

TEST(point_table_of_a_sliding_window) {
  // All points but one leave soon. The heap of ages must not keep their entries.
  PointTable table(1);
  Ids kept;
  for (int64_t i = 0; i < 2000; ++i) {
    const std::vector<float> vector(1, 0.0f);
    Ids leaving;
    if (kept.size() == 5) {
      leaving = plain(table.oldest(1, {}, Ids{0}));
      EXPECT_EQ(leaving, Ids{kept[1]});
      kept.erase(kept.begin() + 1);
    }
    const Ids arrival = {i};
    kept.push_back(table.reserve({vector, {}, arrival, i + 1, i + 1}, leaving)[0]);
    table.name(Ids{i});
    table.commit(leaving);
    EXPECT_EQ(plain(table.oldest(9, {}, {})), kept);
    EXPECT(table.bytes() < 10'000);
  }
}

TEST(point_table_whose_times_become_floats) {
  for (uint64_t round = 0; round < 20; ++round) {
    Random random(testing::base_seed() + round);
    TableWorld world(TimeKind::kInts);
    for (int i = 0; i < 30; ++i) {
      world.apply(world.random_update(random));
      if (random.chance(0.3)) world.compare_oldest(random);
      if (i == 15) {
        EXPECT(world.table.exact_as_floats());
        world.recode(TimeKind::kFloats);
        world.compare(world.table);
        world.recode(TimeKind::kInts);
        world.compare(world.table);
      }
      if (i == 20) world.recode(TimeKind::kFloats);
      world.compare_oldest(random);
    }
    world.compare(world.table);
  }
}

TEST(point_table_times_that_are_exact_as_floats) {
  constexpr int64_t kLargest = int64_t{1} << 53;
  const std::vector<float> vector(1, 0.0f);
  for (const auto& [time, exact] : std::map<int64_t, bool>{{0, true},
                                                           {kLargest, true},
                                                           {-kLargest, true},
                                                           {kLargest + 1, false},
                                                           {-kLargest - 1, false}}) {
    PointTable table(1, TimeKind::kInts);
    const Ids times = {time}, arrivals = {0};
    table.reserve({vector, times, arrivals, 1, 1}, {});
    table.name(Ids{0});
    EXPECT(table.exact_as_floats());  // pending points are not looked at
    table.commit({});
    EXPECT_EQ(table.exact_as_floats(), exact);
    const Ids slot = {0};
    table.reserve({{}, {}, {}, 1, 1}, slot);
    table.commit(slot);
    EXPECT(table.exact_as_floats());
  }
}

TEST(point_table_orders_of_floats) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double times[] = {-infinity, -1e300, -2.5, -1.0,  -5e-324,
                          0.0,       5e-324, 1.0,  1e300, infinity};
  for (const double a : times) {
    EXPECT_EQ(time_of(order_of(a)), a);
    EXPECT(std::get<double>(time_from(TimeKind::kFloats, order_of(a))) == a);
    for (const double b : times) EXPECT_EQ(order_of(a) < order_of(b), a < b);
  }
  EXPECT_EQ(order_of(-0.0), order_of(0.0));
  EXPECT_EQ(std::get<int64_t>(time_from(TimeKind::kInts, -7)), -7);
  EXPECT_EQ(std::get<int64_t>(time_from(TimeKind::kDates, 7)), 7);
}

TEST(point_table_whose_slots_are_given_back) {
  Random random(testing::base_seed());
  TableWorld world;
  for (int i = 0; i < 10; ++i) world.apply(world.random_update(random));
  const std::vector<float> vectors(5 * kDimension, 1.0f);
  const Ids arrivals = {500, 501, 502, 503, 504};
  const PointTable::NewPoints points{vectors, {}, arrivals, 1000, 1000};
  const Ids slots = plain(world.table.reserve(points, {}));
  EXPECT_EQ(slots, world.free_slots(5));
  world.compare(world.table);
  world.table.give_back();
  world.table.give_back();
  EXPECT_EQ(plain(world.table.reserve(points, {})), slots);
  world.table.give_back();
  world.compare(world.table);
  world.apply(world.random_update(random));
  world.compare(world.table);
}

TEST(point_table_rejects) {
  Random random(testing::base_seed());
  TableWorld world;
  while (world.points.size() < 5) world.apply(world.random_update(random));
  const std::vector<float> vector(kDimension, 1.0f);
  const Ids one = {900}, two = {900, 901}, time = {5};
  EXPECT_THROWS(std::invalid_argument, world.table.reserve({vector, {}, two, 902, 902}, {}));
  EXPECT_THROWS(std::invalid_argument, world.table.reserve({vector, time, one, 902, 902}, {}));
  PointTable timed(kDimension, TimeKind::kInts);
  EXPECT_THROWS(std::invalid_argument, timed.reserve({vector, {}, one, 902, 902}, {}));
  world.table.reserve({vector, {}, one, 902, 902}, {});
  EXPECT_THROWS(std::invalid_argument, world.table.name(two));
  world.table.give_back();
  world.compare(world.table);
  EXPECT_THROWS(std::out_of_range, world.table.keys_of(Ids{-1}));
  EXPECT_THROWS(std::out_of_range, world.table.vectors_of(Ids{9999}));
}

TEST(point_table_states_that_are_wrong) {
  TableWorld world;
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
  reject([&](State& s) { s.kind = TimeKind::kInts; });
}

}  // namespace
}  // namespace dynhac
