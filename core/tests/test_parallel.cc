// Parallel updates of the engine: the same bytes whatever the number of threads, and the state from
// before if any allocation fails. Small graphs are cut into many ranges, so that every loop that
// can run in parallel does.

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/hierarchy/state.h"
#include "core/tests/engine_world.h"
#include "core/tests/random_batches.h"
#include "core/tests/small_ranges.h"
#include "core/tests/testing.h"

namespace dynhac::testing {
namespace {

std::string bytes(const Engine& engine) {
  std::string all;
  Workers alone(1);
  for (size_t i = 0; i < EngineState::names(engine).size(); ++i) {
    std::visit(
        [&](const auto& column) {
          all.append(reinterpret_cast<const char*>(column.data()),
                     column.size() * sizeof(column[0]));
          all.push_back('|');
        },
        EngineState::save(engine, i, alone));
  }
  return all;
}

enum class Shape { kRandom, kStar, kLateStar, kHubs, kCliques, kPath };

// A graph of `n` new vertices.
BatchData graph(Random& random, Shape shape, Weights kind, int64_t n) {
  BatchData batch;
  for (int64_t i = 0; i < n; ++i) {
    batch.add.push_back(i);
    switch (shape) {
      case Shape::kRandom:
        for (int64_t k = 1; k < 6 && k <= i; k += 1 + random.below(3)) {
          batch.edge(i, i - k, draw(random, kind));
        }
        break;
      case Shape::kStar:
        if (i > 0) batch.edge(i, 0, draw(random, kind));
        break;
      case Shape::kLateStar:
        if (i + 1 < n) batch.edge(n - 1, i, draw(random, kind));
        break;
      case Shape::kHubs:
        for (int64_t h = 0; h < 4 && h < i; ++h) batch.edge(h, i, draw(random, kind));
        break;
      case Shape::kCliques:
        for (int64_t k = i - i % 12; k < i; ++k) batch.edge(i, k, draw(random, kind));
        break;
      case Shape::kPath:
        if (i > 0) batch.edge(i - 1, i, draw(random, kind));
        break;
    }
  }
  return batch;
}

TEST(parallel_updates_give_the_same_bytes) {
  uint64_t seed = base_seed();
  for (const Shape shape : {Shape::kRandom, Shape::kStar, Shape::kLateStar, Shape::kHubs,
                            Shape::kCliques, Shape::kPath}) {
    for (const Weights kind : {Weights::kEqual, Weights::kFew, Weights::kMany}) {
      const SmallRanges small(size_t{1} << (4 + 4 * (seed % 3)));
      Random random(++seed);
      std::vector<std::unique_ptr<World>> worlds;
      for (const uint32_t threads : {1, 2, 3, 7, 16}) {
        worlds.push_back(std::make_unique<World>(seed % 2 == 0 ? 0.1 : 0.0, 0, threads));
      }
      BatchData batch = graph(random, shape, kind, 150);
      for (int step = 0; step < 4; ++step) {
        for (const auto& world : worlds) world->apply(batch);
        const std::string expected = bytes(worlds[0]->engine);
        for (const auto& world : worlds) EXPECT(bytes(world->engine) == expected);
        for (const auto& world : worlds) world->next_id += 1000;
        worlds[1]->expect_right();
        batch = random_batch(random, *worlds[0], kind, 150, 20);
      }
    }
  }
}

TEST(parallel_failures_of_every_allocation) {
  const SmallRanges small(size_t{1} << 12);
  int64_t failures = 0;
  for (uint64_t round = 0; round < 4; ++round) {
    Random random(base_seed() + round);
    World world(0.1, 0, round % 2 == 0 ? 3 : 1);
    const BatchData first = graph(random, Shape::kRandom, Weights::kFew, 40);
    BatchData batch = first;
    if (round >= 2) {
      world.apply(first);
      world.next_id = 1000;
      batch = random_batch(random, world, Weights::kFew, 40, 12);
    }
    const std::string before = bytes(world.engine);
    for (int64_t after = 0;; ++after) {
      fail_allocation(after);
      try {
        world.apply(batch);
        fail_allocation(-1);
        break;
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      EXPECT(bytes(world.engine) == before);
    }
    world.expect_right();
  }
  EXPECT(failures > 200);
}

TEST(parallel_errors_are_those_of_one_thread) {
  const SmallRanges small(size_t{1} << 12);
  struct Case {
    BatchData batch;
    const char* kind;
    int64_t index, other;
  };
  std::vector<Case> cases;
  BatchData good;
  for (int64_t i = 0; i < 40; ++i) {
    good.add.push_back(i);
    if (i > 0) good.edge(i, i / 2, 0.5);
  }
  auto with = [&](auto change, const char* kind, int64_t index, int64_t other) {
    cases.push_back({good, kind, index, other});
    change(cases.back().batch);
  };
  with([](BatchData& b) { b.add[30] = b.add[20] = 7; }, "duplicate_add", 20, 7);
  with([](BatchData& b) { b.v[35] = b.v[12] = 99; }, "unknown_endpoint", 12, 1);
  with([](BatchData& b) { b.w[35] = b.w[12] = 0; }, "weight_invalid", 12, 0);
  with([](BatchData& b) { b.v[11] = b.u[11]; }, "self_loop", 11, 0);
  with([](BatchData& b) { b.edge(3, 7, 0.25); }, "weight_conflict", 39, 6);
  for (const Case& c : cases) {
    for (const uint32_t threads : {1, 4}) {
      World world(0.1, 0, threads);
      try {
        world.apply(c.batch);
        EXPECT(false);
      } catch (const BatchError& error) {
        EXPECT_EQ(std::string(error.kind), std::string(c.kind));
        EXPECT_EQ(error.index, c.index);
        EXPECT_EQ(error.other, c.other);
      }
      EXPECT_EQ(world.engine.size(), size_t{0});
      world.apply(good);
      world.expect_right();
    }
  }
}

TEST(parallel_loops_rethrow_the_first_failure) {
  for (const uint32_t threads : {1, 2, 5}) {
    Workers workers(threads);
    for (int round = 0; round < 20; ++round) {
      std::optional<Workers::Session> session;
      if (round % 2 == 0) session.emplace(workers);
      size_t failed = 0;
      try {
        workers.run(100, [](size_t piece, uint32_t) {
          if (piece % 10 == 7) throw piece;
        });
      } catch (const size_t piece) {
        failed = piece;
      }
      EXPECT_EQ(failed, size_t{7});
      std::atomic<size_t> sum{0};
      workers.for_ranges(1000, 30, [&](size_t begin, size_t end, uint32_t hand) {
        EXPECT(hand >= 1 && hand <= threads);
        sum += end - begin;
      });
      EXPECT_EQ(sum.load(), size_t{1000});
    }
  }
}

}  // namespace
}  // namespace dynhac::testing
