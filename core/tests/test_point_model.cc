// Models of points through random batches, against a simulation of the rules.

#include <limits>
#include <memory>
#include <vector>

#include "core/tests/point_world.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using testing::Ids;
using testing::IndexKind;
using testing::key_of;
using testing::plain;
using testing::PointSetup;
using testing::PointStep;
using testing::PointWorld;
using testing::text_of;

PointSetup random_setup(Random& random) {
  PointSetup setup;
  setup.text = random.chance(0.5);
  setup.kind = static_cast<TimeKind>(random.below(4));
  setup.index = random.chance(0.5) ? IndexKind::kScan : IndexKind::kTree;
  setup.rules.n_neighbors = static_cast<size_t>(1 + random.below(6));
  setup.rules.repair = random.chance(0.7);
  if (random.chance(0.2)) setup.rules.least_weight = 0.4;
  if (random.chance(0.4)) setup.rules.max_points = random.below(25);
  if (setup.kind != TimeKind::kNone && random.chance(0.5)) {
    setup.rules.max_age = 0.5 * static_cast<double>(random.below(24));
  }
  return setup;
}

TEST(point_model_through_random_updates) {
  for (uint64_t round = 0; round < 150; ++round) {
    Random random(testing::base_seed() + round);
    PointWorld world(random_setup(random));
    for (int i = 0; i < 40; ++i) {
      if (i == 20 && world.kind == TimeKind::kInts && random.chance(0.5)) {
        world.kind = TimeKind::kFloats;
      }
      world.apply(world.random_step(random));
      world.expect_right();
      if (random.chance(0.05)) world.model.lose_index();
    }
    world.apply({});
    if (world.text) EXPECT_EQ(world.ids.size(), world.simulation.points.size());
  }
}

PointStep grid(int64_t count) {
  PointStep step;
  for (int64_t i = 0; i < count; ++i) {
    step.inserted.push_back(i);
    step.vectors.push_back({static_cast<float>(i % 4), static_cast<float>(i / 4)});
  }
  return step;
}

PointStep row_of(const PointStep& step, size_t i) {
  return {{}, {step.inserted[i]}, {step.vectors[i]}, {}, {}};
}

TEST(point_model_single_points_and_batches_give_the_same) {
  // With as many neighbours as there are points, the edges do not depend on the order.
  for (const bool text : {false, true}) {
    for (const IndexKind kind : {IndexKind::kScan, IndexKind::kTree}) {
      PointSetup setup{.text = text, .index = kind};
      setup.rules.n_neighbors = 12;
      const PointStep all = grid(12);
      PointWorld at_once(setup), singly(setup);
      at_once.apply(all);
      for (size_t i = 0; i < all.inserted.size(); ++i) {
        singly.apply(row_of(all, i));
        singly.expect_right();
      }
      at_once.expect_right();
      EXPECT_EQ(at_once.edges().size(), 12 * 11 / 2);
      EXPECT(at_once.edges() == singly.edges());
      const auto a = at_once.model.table()->state(), b = singly.model.table()->state();
      EXPECT_EQ(a.keys, b.keys);
      EXPECT_EQ(a.arrival, b.arrival);
      EXPECT_EQ(a.vectors, b.vectors);
      EXPECT_EQ(a.next_id, b.next_id);
    }
  }
}

TEST(point_model_before_its_first_points) {
  PointSetup setup{.kind = TimeKind::kInts};
  setup.rules.max_age = 5;
  PointWorld world(setup);
  world.apply({});
  world.apply({{}, {}, {}, {}, 10.0});
  EXPECT(world.model.table() == nullptr);
  EXPECT(world.chooser.calls.empty());
  EXPECT_EQ(world.model.ids_of({}).size(), 0);
  EXPECT_THROWS(BatchError, world.model.find(world.column({0})));
  world.expect_right();
  // The first points are dropped at once: they have arrived all the same.
  world.apply({{}, {7, 8}, {{0, 0}, {1, 1}}, {1, 4}, {}});
  EXPECT(world.model.table() != nullptr);
  EXPECT(world.chooser.calls.empty());
  EXPECT_EQ(world.model.table()->next_arrival(), 2);
  EXPECT_EQ(world.model.table()->next_id(), 9);
  world.expect_right();
  world.apply({{}, {7}, {{0, 0}}, {5}, {}});
  EXPECT_EQ(world.model.table()->size(), 1);
  world.expect_right();
}

TEST(point_model_largest_int_id) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  PointWorld world({});
  const PointStep step{{}, {kLargest, -kLargest - 1}, {{0, 0}, {1, 0}}, {}, {}};
  world.model.update(world.batch_of(step)->batch, nullptr);
  EXPECT_EQ(world.model.table()->next_id(), kLargest);
  EXPECT_EQ(plain(world.model.find(world.column(step.inserted))), (Ids{0, 1}));
}

TEST(point_model_replaces_an_index_that_it_outgrows) {
  using Call = testing::TestChooser::Call;
  for (const bool keeps : {false, true}) {
    PointWorld world({});
    world.chooser.keeps = keeps;
    const PointStep all = grid(9);
    for (size_t i = 0; i < 9; ++i) {
      world.apply(row_of(all, i));
      world.expect_right();
    }
    // Every index is good for twice the points that it was chosen for.
    EXPECT(world.chooser.calls ==
           std::vector<Call>{{2, 1, "", false}, {2, 3, "scan", true}, {2, 7, "scan", true}});
    EXPECT_EQ(world.model.index().max_points, 14);
    world.apply({{0, 1, 2, 3}, {}, {}, {}, {}});
    EXPECT_EQ(world.chooser.calls.size(), 3);
    world.expect_right();
  }
}

TEST(point_model_rebuilds_a_lost_index) {
  PointWorld world({});
  world.apply(grid(8));
  world.model.lose_index();
  EXPECT(world.model.index_lost());
  world.apply({});  // nothing is searched for
  EXPECT(world.model.index_lost());
  world.model.set_index_saved();
  EXPECT(world.model.index_saved());
  world.apply({{3}, {20}, {{5, 5}}, {}, {}});
  EXPECT(!world.model.index_lost());
  EXPECT(!world.model.index_saved());
  EXPECT_EQ(world.chooser.calls.size(), 2);
  EXPECT(world.chooser.calls.back() == (testing::TestChooser::Call{2, 8, "scan", false}));
  world.expect_right();
}

TEST(point_model_of_an_index_of_the_user) {
  testing::Faults faults;
  const auto own = std::make_shared<testing::ScanIndex>(PointWorld::kDimension, faults);
  PointWorld world({}, {own, "", std::numeric_limits<int64_t>::max()});
  world.apply(grid(8));
  world.apply({{0, 1}, {30}, {{5, 5}}, {}, {}});
  EXPECT(world.chooser.calls.empty());
  EXPECT_EQ(own->size(), 7);
  world.expect_right();
  world.model.lose_index();
  world.apply({{2}, {}, {}, {}, {}});
  EXPECT(world.chooser.calls == std::vector<testing::TestChooser::Call>{{2, 6, "", false}});
  EXPECT(world.model.index().index != own);
  world.expect_right();
}

TEST(point_model_forgets_the_texts_of_points_that_are_gone) {
  PointSetup setup{.text = true, .kind = TimeKind::kInts};
  setup.rules.max_age = 10;
  setup.rules.max_points = 4;
  PointWorld world(setup);
  world.apply({{}, {0, 1, 2, 3}, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}, {100, 101, 102, 103}, {}});
  EXPECT_EQ(world.ids.size(), 4);
  // Point 0 is deleted, 1 expires, 5 is too old and 2 is replaced by a point that is too old.
  world.apply({{0, 2}, {4, 5, 2, 6}, {{4, 0}, {5, 0}, {2, 0}, {6, 0}}, {112, 90, 91, 112}, {}});
  EXPECT_EQ(world.engine.size(), 3);
  for (const int64_t gone : {0, 1, 2, 5}) {
    EXPECT_EQ(key_of(world.ids, text_of(gone)), IdTable::kUnknownKey);
  }
  world.apply({});
  EXPECT_EQ(world.ids.size(), 3);
  world.apply({{}, {}, {}, {}, 200.0});  // all expire
  world.apply({});
  EXPECT_EQ(world.ids.size(), 0);
  EXPECT(world.ids.used());
  world.expect_right();
  // An id that comes again gets another key, one that is replaced keeps its key.
  const int64_t next_key = world.ids.next_key();
  world.apply({{}, {4}, {{4, 0}}, {201}, {}});
  EXPECT_EQ(key_of(world.ids, text_of(4)), next_key);
  world.apply({{4}, {4}, {{1, 1}}, {202}, {}});
  EXPECT_EQ(key_of(world.ids, text_of(4)), next_key);
  world.apply({});
  EXPECT_EQ(world.ids.size(), 1);
  world.expect_right();
}

TEST(point_model_keeps_the_texts_that_a_watch_needs) {
  PointWorld world({.text = true});
  const int64_t watch = world.engine.add_watch({0.1, 1});
  world.apply(grid(4));
  const Vec<int64_t> keys = world.engine.keys();
  world.apply({{0, 1}, {}, {}, {}, {}});
  world.apply({});
  EXPECT_EQ(world.ids.size(), 4);
  EXPECT_EQ(plain(world.ids.texts(keys))[0], text_of(0));
  world.engine.drop_steps(watch, world.engine.steps(watch).size());
  world.apply({});
  EXPECT_EQ(world.ids.size(), 2);
  world.expect_right();
}

TEST(point_model_goes_on_from_a_loaded_state) {
  PointSetup setup{.text = true, .kind = TimeKind::kFloats};
  setup.rules.max_points = 20;
  for (uint64_t round = 0; round < 5; ++round) {
    Random random(testing::base_seed() + round);
    PointWorld world(setup);
    for (int i = 0; i < 15; ++i) world.apply(world.random_step(random));
    // Another model of the same engine and ids; its index is built again.
    PointModel again(world.engine, world.ids, world.similarity, world.chooser,
                     {world.rules.n_neighbors, world.rules.least_weight, world.rules.repair},
                     Window(20, std::nullopt), {});
    again.load(std::make_shared<PointTable>(2, world.model.table()->state()));
    again.load_clock(world.model.window().clock());
    again.load_index({});
    const PointStep step = world.random_step(random);
    again.update(world.batch_of(step)->batch, nullptr);
    world.simulation.update(step);
    EXPECT_EQ(again.table()->size(), world.simulation.points.size());
    for (const auto& [id, point] : world.simulation.points) {
      EXPECT_EQ(plain(again.find(world.column({id}))), Ids{point.slot});
    }
    EXPECT_EQ(world.edges().size(), world.simulation.edges.size());
    EXPECT(world.engine.export_all().wrong_caches.empty());
  }
}

}  // namespace
}  // namespace dynhac
