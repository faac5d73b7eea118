// Updates of points that fail: at every allocation, at every call of the neighbour index, in a
// callback. The model must be as before, and the same update must work afterwards.

#include <stdexcept>
#include <string>
#include <vector>

#include "core/tests/point_world.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using testing::fails_at;
using testing::Faults;
using testing::IndexFailure;
using testing::IndexKind;
using testing::PointSetup;
using testing::PointStep;
using testing::PointWorld;

// A model that some updates have brought to a state, and the update that will fail.
struct Scenario {
  PointSetup setup;
  std::vector<PointStep> before;
  TimeKind kind;  // of the timestamps in the update
  PointStep step;

  void prepare(PointWorld& world) const {
    for (const PointStep& one : before) world.apply(one);
    world.ids.forget_retired();  // an update does so first, also one that fails
    world.kind = kind;
  }

  // What the update does if nothing fails.
  struct Outcome {
    std::string state;
    bool chooses_index;
  };
  Outcome outcome() const {
    PointWorld world(setup);
    prepare(world);
    const size_t calls = world.chooser.calls.size();
    world.apply(step);
    world.expect_right();
    return {world.state(), world.chooser.calls.size() > calls};
  }
};

Scenario random_scenario(uint64_t seed, IndexKind index) {
  Random random(seed);
  Scenario scenario;
  scenario.setup.index = index;
  scenario.setup.text = seed % 2 == 0;
  scenario.setup.kind = seed % 3 == 0 ? TimeKind::kInts : TimeKind::kNone;
  scenario.setup.rules.n_neighbors = 4;
  if (seed % 4 < 2) scenario.setup.rules.max_points = 12;
  if (scenario.setup.kind == TimeKind::kInts) scenario.setup.rules.max_age = 5;
  PointWorld world(scenario.setup);
  const int64_t count = seed % 5 == 0 ? 0 : 8;
  for (int64_t i = 0; i < count; ++i) {
    scenario.before.push_back(world.random_step(random));
    world.apply(scenario.before.back());
  }
  // Timestamps become floats in the update.
  if (scenario.setup.kind == TimeKind::kInts) world.kind = TimeKind::kFloats;
  scenario.kind = world.kind;
  while (scenario.step.inserted.size() != (seed % 7 == 0 ? 1u : 4u)) {
    scenario.step = world.random_step(random);
  }
  return scenario;
}

TEST(point_failures_of_every_allocation) {
  int64_t failures = 0;
  for (uint64_t round = 0; round < 24; ++round) {
    const IndexKind index = round % 2 == 0 ? IndexKind::kScan : IndexKind::kTree;
    const Scenario scenario = random_scenario(testing::base_seed() + round / 2, index);
    const std::string expected = scenario.outcome().state;
    bool failed = true;
    for (int64_t after = 0; failed; ++after) {
      PointWorld world(scenario.setup);
      scenario.prepare(world);
      const std::string before = world.state();
      const auto data = world.batch_of(scenario.step);
      failed = fails_at(after, [&] { world.model.update(data->batch, nullptr); });
      if (!failed) {
        EXPECT_EQ(world.state(), expected);
        break;
      }
      ++failures;
      EXPECT_EQ(world.state(), before);
      world.expect_index_right();
      world.apply(scenario.step);
      EXPECT_EQ(world.state(), expected);
      world.expect_right();
    }
  }
  EXPECT(failures > 1000);
}

TEST(point_failures_one_after_the_other) {
  // The same model fails at one allocation after the other until an update succeeds.
  for (uint64_t round = 0; round < 24; ++round) {
    const IndexKind index = round % 2 == 0 ? IndexKind::kScan : IndexKind::kTree;
    const Scenario scenario = random_scenario(testing::base_seed() + round / 2, index);
    PointWorld world(scenario.setup);
    scenario.prepare(world);
    const std::string before = world.state();
    const auto data = world.batch_of(scenario.step);
    for (int64_t after = 0; fails_at(after, [&] { world.model.update(data->batch, nullptr); });
         ++after) {
      EXPECT_EQ(world.state(), before);
    }
    EXPECT_EQ(world.state(), scenario.outcome().state);
  }
}

TEST(point_failures_of_every_call_of_the_index) {
  int64_t failures = 0;
  for (uint64_t round = 0; round < 12; ++round) {
    const Scenario scenario = random_scenario(testing::base_seed() + round, IndexKind::kScan);
    const auto [expected, chooses_index] = scenario.outcome();
    for (const Faults& kind : {Faults{}, Faults{.after = true}, Faults{.destroyed = true},
                               Faults{.after = true, .destroyed = true}, Faults{.lasting = true},
                               Faults{.lasting = true, .after = true}}) {
      bool failed = true;
      for (int64_t call = 0; failed; ++call) {
        PointWorld world(scenario.setup);
        scenario.prepare(world);
        const std::string before = world.state();
        const auto data = world.batch_of(scenario.step);
        world.chooser.faults = kind;
        world.chooser.faults.first = call;
        world.chooser.faults.calls = 0;
        failed = false;
        try {
          world.model.update(data->batch, nullptr);
        } catch (const IndexFailure&) {
          failed = true;
        }
        world.chooser.faults = {};
        if (!failed) {
          EXPECT_EQ(world.state(), expected);
          break;
        }
        ++failures;
        EXPECT_EQ(world.state(), before);
        world.expect_index_right();
        // An index made for this update is dropped; the model's own is put back or lost.
        const bool lost = world.model.index_lost();
        if (kind.destroyed) EXPECT_EQ(lost, !chooses_index);
        if (!kind.destroyed && !kind.lasting) EXPECT(!lost);
        const size_t calls = world.chooser.calls.size();
        const auto old = world.model.index().index;
        world.apply(scenario.step);
        EXPECT(!world.model.index_lost());
        if (lost) {
          EXPECT(world.model.index().index != old);
          EXPECT_EQ(world.chooser.calls.size(), calls + 1);
          EXPECT(world.chooser.calls.back().before == "scan");
          EXPECT(!world.chooser.calls.back().outgrown);
        }
        EXPECT_EQ(world.state(), expected);
        world.expect_right();
      }
    }
  }
  EXPECT(failures > 100);
}

TEST(point_failures_of_a_tree_lose_it) {
  // A tree that fails half-way is not whole; some allocation of an addition must cause that.
  PointSetup setup{.index = IndexKind::kTree};
  const PointStep step{{}, {100, 101}, {{9, 9}, {8, 8}}, {}, {}};
  bool failed = true;
  int64_t lost = 0;
  for (int64_t after = 0; failed; ++after) {
    PointWorld world(setup);
    PointStep first;
    for (int64_t i = 0; i < 32; ++i) {
      first.inserted.push_back(i);
      first.vectors.push_back({static_cast<float>(i % 6), static_cast<float>(i / 6)});
    }
    world.apply(first);
    const std::string before = world.state();
    const auto data = world.batch_of(step);
    failed = fails_at(after, [&] { world.model.update(data->batch, nullptr); });
    if (!failed) break;
    EXPECT_EQ(world.state(), before);
    lost += world.model.index_lost();
    world.apply(step);
    EXPECT(!world.model.index_lost());
    world.expect_right();
  }
  EXPECT(lost > 0);
}

struct Cancelled : std::exception {};

// Throws at one of its calls.
struct Cancel : Poll {
  explicit Cancel(int64_t at) : at(at) {}
  void check() override {
    if (at-- == 0) throw Cancelled();
  }
  int64_t at;
};

TEST(point_failures_of_a_poll) {
  int64_t failures = 0;
  for (uint64_t round = 0; round < 12; ++round) {
    const Scenario scenario = random_scenario(testing::base_seed() + round, IndexKind::kTree);
    const std::string expected = scenario.outcome().state;
    bool cancelled = true;
    for (int64_t call = 0; cancelled; ++call) {
      PointWorld world(scenario.setup);
      scenario.prepare(world);
      const std::string before = world.state();
      Cancel poll(call);
      cancelled = false;
      try {
        world.model.update(world.batch_of(scenario.step)->batch, &poll);
      } catch (const Cancelled&) {
        cancelled = true;
      }
      if (!cancelled) break;
      ++failures;
      EXPECT_EQ(world.state(), before);
      EXPECT(!world.model.index_lost());
      world.expect_index_right();
      world.apply(scenario.step);
      EXPECT_EQ(world.state(), expected);
    }
  }
  EXPECT(failures > 5);
}

struct FailingSimilarity : SimilarityRule {
  FailingSimilarity() : SimilarityRule(Kind::kInverse) {}
  void apply(std::span<double> values, Workers& workers) const override {
    if (calls_left-- == 0) throw Cancelled();
    SimilarityRule::apply(values, workers);
  }
  mutable int64_t calls_left = -1;
};

TEST(point_failures_of_the_similarity) {
  int64_t failures = 0;
  for (uint64_t round = 0; round < 12; ++round) {
    const Scenario scenario = random_scenario(testing::base_seed() + round, IndexKind::kScan);
    for (const int64_t call : {0, 1}) {
      FailingSimilarity similarity;
      PointWorld world(scenario.setup, {}, &similarity);
      scenario.prepare(world);
      const std::string before = world.state();
      const auto data = world.batch_of(scenario.step);
      similarity.calls_left = call;
      try {
        world.model.update(data->batch, nullptr);
        continue;  // it is not called as often
      } catch (const Cancelled&) {
      }
      ++failures;
      EXPECT_EQ(world.state(), before);
      EXPECT(!world.model.index_lost());
      world.expect_index_right();
      world.apply(scenario.step);
      EXPECT_EQ(world.state(), scenario.outcome().state);
    }
  }
  EXPECT(failures > 5);
}

TEST(point_failures_of_the_chooser) {
  PointWorld world({});
  world.chooser.fails = true;
  const PointStep first{{}, {0, 1, 2}, {{0, 0}, {1, 0}, {2, 0}}, {}, {}};
  const std::string empty = world.state();
  EXPECT_THROWS(IndexFailure, world.model.update(world.batch_of(first)->batch, nullptr));
  EXPECT_EQ(world.state(), empty);
  EXPECT(world.model.table() == nullptr);
  world.chooser.fails = false;
  world.apply(first);
  world.chooser.fails = true;
  // Too many for the index.
  const PointStep more{
      {1}, {10, 11, 12, 13, 14, 15}, std::vector(6, std::vector<float>(2)), {}, {}};
  const std::string before = world.state();
  EXPECT_THROWS(IndexFailure, world.model.update(world.batch_of(more)->batch, nullptr));
  EXPECT_EQ(world.state(), before);
  EXPECT(!world.model.index_lost());
  world.model.lose_index();
  EXPECT_THROWS(IndexFailure, world.model.update(world.batch_of(more)->batch, nullptr));
  EXPECT_EQ(world.state(), before);
  EXPECT(world.model.index_lost());
  world.chooser.fails = false;
  world.apply(more);
  world.expect_right();
}

}  // namespace
}  // namespace dynhac
