// Batches of points that are rejected: the error names the place, and nothing changes.

#include <limits>
#include <string>
#include <vector>

#include "core/tests/point_world.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using testing::Ids;
using testing::PointSetup;
using testing::PointStep;
using testing::PointWorld;

constexpr int64_t k53 = int64_t{1} << 53;

PointStep row(int64_t first, int64_t count) {
  PointStep step;
  for (int64_t i = first; i < first + count; ++i) {
    step.inserted.push_back(i);
    step.vectors.push_back({static_cast<float>(i), 0});
  }
  return step;
}

void reject(PointWorld& world, const PointStep& step, const std::string& kind, int64_t index,
            int64_t other = 0) {
  const auto data = world.batch_of(step);
  const std::string before = world.state();
  bool rejected = false;
  try {
    world.model.update(data->batch, nullptr);
  } catch (const BatchError& error) {
    rejected = true;
    EXPECT_EQ(std::string(error.kind), kind);
    EXPECT_EQ(error.index, index);
    EXPECT_EQ(error.other, other);
  }
  EXPECT(rejected);
  EXPECT_EQ(world.state(), before);
  EXPECT(!world.model.index_lost());
  world.expect_right();
}

TEST(point_batches_with_wrong_ids) {
  for (const bool text : {false, true}) {
    PointWorld world({.text = text});
    reject(world, {{3}, {}, {}, {}, {}}, "unknown_id", 0);
    reject(world, {{}, {1, 2, 1}, {{0, 0}, {1, 1}, {2, 2}}, {}, {}}, "duplicate_id", 2, 0);
    EXPECT(!world.ids.used());  // a rejected batch does not make ids texts
    EXPECT(world.model.table() == nullptr);
    world.apply(row(0, 8));
    reject(world, {{2, 3, 99}, {}, {}, {}, {}}, "unknown_id", 2);
    reject(world, {{2, 3, 4, 3}, {}, {}, {}, {}}, "duplicate_delete", 3, 1);
    reject(world, {{}, {20, 5}, {{0, 0}, {1, 1}}, {}, {}}, "present_id", 1);
    reject(world, {{4}, {20, 5}, {{0, 0}, {1, 1}}, {}, {}}, "present_id", 1);
    reject(world, {{5}, {20, 5, 21, 5}, std::vector(4, std::vector<float>(2)), {}, {}},
           "duplicate_id", 3, 1);
    reject(world, {{}, {20, 21, 20}, std::vector(3, std::vector<float>(2)), {}, {}}, "duplicate_id",
           2, 0);
    if (text) EXPECT_EQ(world.ids.size(), 8);
    world.apply({{5}, {20, 5}, {{0, 0}, {1, 1}}, {}, {}});
    world.expect_right();
  }
}

TEST(point_batches_with_times_that_are_not_exact_as_floats) {
  PointSetup setup{.kind = TimeKind::kInts};
  setup.rules.max_points = 5;
  PointWorld world(setup);
  const auto insert = [&](int64_t id, TimeKind kind, int64_t order) {
    PointBatch batch;
    batch.inserted = world.column({id});
    const std::vector<float> vector = {static_cast<float>(id), 0};
    batch.vectors = vector;
    batch.dimension = 2;
    batch.time_kind = kind;
    batch.times = {&order, 1};
    world.model.update(batch, nullptr);
  };
  insert(0, TimeKind::kInts, k53 + 1);
  const std::string before = world.state();
  try {
    insert(1, TimeKind::kFloats, order_of(0.5));
    EXPECT(false);
  } catch (const BatchError& error) {
    EXPECT_EQ(std::string(error.kind), "inexact_times");
  }
  EXPECT_EQ(world.state(), before);
  EXPECT(world.model.table()->kind() == TimeKind::kInts);
  // Once the point is gone, floats are accepted.
  PointBatch batch;
  batch.deleted = world.column({0});
  world.model.update(batch, nullptr);
  insert(1, TimeKind::kInts, k53);
  insert(2, TimeKind::kFloats, order_of(0.5));
  EXPECT(world.model.table()->kind() == TimeKind::kFloats);
  EXPECT_EQ(time_of(world.model.table()->time(0)), 0x1p53);
}

// The similarity of all pairs, set by the test.
struct Constant : Similarity {
  void apply(std::span<double> values, Workers&) const override {
    for (double& value : values) value = weight;
  }
  double weight = 1;
};

TEST(point_batches_with_edges_that_the_engine_rejects) {
  struct Case {
    double weight;
    const char* kind;
  };
  const Case cases[] = {{std::numeric_limits<double>::infinity(), "weight_invalid"},
                        {0.0, "weight_invalid"},
                        {1e-30, "weight_underflow"},
                        {1e30, "weight_overflow"},
                        {0x1p60 * PointWorld::kResolution, "total_overflow"}};
  for (const bool text : {false, true}) {
    PointSetup setup{.text = text};
    setup.rules.least_weight = 0;
    setup.rules.n_neighbors = 10;
    for (const Case& c : cases) {
      Constant similarity;
      PointWorld world(setup, {}, &similarity);
      const auto first = world.batch_of(row(0, 2));
      world.model.update(first->batch, nullptr);
      const std::string before = world.state();
      similarity.weight = c.weight;
      PointStep step = row(2, 3);
      step.deleted = {0};
      const auto data = world.batch_of(step);
      try {
        world.model.update(data->batch, nullptr);
        EXPECT(false);
      } catch (const EdgeError& error) {
        EXPECT_EQ(std::string(error.kind), c.kind);
        EXPECT_EQ(error.weight, c.weight);
        EXPECT_EQ(error.ends.text, text);
        EXPECT_EQ(error.ends.size(), 2);
        // The first edge; a total is too large only after a few.
        if (std::string(c.kind) != "total_overflow") {
          EXPECT_EQ(world.shown(error.ends), world.shown(Ids{2, 1}));
        }
      }
      EXPECT_EQ(world.state(), before);
      EXPECT(!world.model.index_lost());
      similarity.weight = 0.5;
      world.model.update(data->batch, nullptr);
      EXPECT_EQ(world.engine.size(), 4);
      EXPECT_EQ(world.engine.edges_with_keys().second.u.size(), 6);
    }
  }
}

}  // namespace
}  // namespace dynhac
