// Random batches, and graphs of difficult shapes (stars, cliques, paths, ...), with all checks
// after each update.

#include <atomic>
#include <thread>

#include "core/tests/engine_world.h"
#include "core/tests/random_batches.h"

namespace dynhac::testing {
namespace {

void random_updates(double epsilon, double threshold, Weights kind, uint64_t seed, int64_t target,
                    int steps) {
  Random random(seed);
  World world(epsilon, threshold);
  world.follow(0.2, 1);
  world.follow(0.07, 3);
  for (const uint32_t min_size : {2, 25}) world.follow(std::nullopt, min_size);
  for (int step = 0; step < steps; ++step) {
    const BatchData batch =
        random_batch(random, world, kind, target, 2 + random.below(target / 8 + 1));
    world.apply(batch);
    world.next_id += static_cast<int64_t>(batch.add.size());
    world.expect_right();
    if (state().failures > 0) {
      std::cout << "  step " << step << " epsilon " << epsilon << " threshold " << threshold
                << " weights " << static_cast<int>(kind) << " target " << target << "\n";
      return;
    }
  }
}

TEST(engine_random_updates_stay_right) {
  uint64_t seed = base_seed();
  for (const double epsilon : {0.0, 0.1, 1.0}) {
    for (const double threshold : {0.0, 0.05}) {
      for (const Weights kind : {Weights::kEqual, Weights::kFew, Weights::kMany, Weights::kWide}) {
        random_updates(epsilon, threshold, kind, ++seed, 12, 60);
        random_updates(epsilon, threshold, kind, ++seed, 60, 60);
        random_updates(epsilon, threshold, kind, ++seed, 200, 120);
      }
    }
  }
}

// A shape with every vertex added and removed one at a time, and its edges reweighted.
void shape_updates(const std::vector<std::pair<int64_t, int64_t>>& pairs, double epsilon,
                   Weights kind, uint64_t seed) {
  Random random(seed);
  World world(epsilon, 0);
  world.follow(0.1, 2);
  for (const uint32_t min_size : {3, 4}) world.follow(std::nullopt, min_size);
  BatchData build;
  std::set<int64_t> ids;
  for (const auto& [a, b] : pairs) ids.insert(a), ids.insert(b);
  build.add.assign(ids.begin(), ids.end());
  for (const auto& [a, b] : pairs) build.edge(a, b, draw(random, kind));
  world.apply(build);
  world.expect_right();
  for (int step = 0; step < 30 && state().failures == 0; ++step) {
    const auto& [a, b] = random.pick(pairs);
    BatchData batch;
    if (step % 3 == 0) {  // replaced: removed with all edges, and added with the same ones
      batch.remove = batch.add = {a};
      for (const auto& [pair, w] : world.edges) {
        if (pair.first == a || pair.second == a) batch.edge(pair.first, pair.second, w);
      }
    } else if (step % 3 == 1) {
      batch.edge(a, b, draw(random, kind));
    } else if (world.edges.contains(std::minmax(a, b))) {
      batch.remove_u = {a};
      batch.remove_v = {b};
    }
    world.apply(batch);
    world.expect_right();
  }
  for (const int64_t id : std::set<int64_t>(world.ids)) {
    BatchData batch;
    batch.remove = {id};
    world.apply(batch);
    if (random.below(16) == 0) world.expect_right();
  }
  EXPECT_EQ(world.engine.size(), size_t{0});
  world.expect_right();
}

TEST(engine_shapes_stay_right) {
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  Pairs star, hubs, clique, path, grid, islands;
  for (int64_t i = 1; i <= 150; ++i) star.push_back({0, i});
  for (int64_t i = 2; i <= 120; ++i) hubs.push_back({i % 2, i}), hubs.push_back({1 - i % 2, i});
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t j = 0; j < i; ++j) clique.push_back({i, j});
  }
  for (int64_t i = 0; i < 150; ++i) path.push_back({i, i + 1});
  for (int64_t i = 0; i < 144; ++i) {
    if (i % 12 != 11) grid.push_back({i, i + 1});
    if (i < 132) grid.push_back({i, i + 12});
  }
  for (int64_t i = 0; i < 120; ++i) islands.push_back({i, i - i % 10 + (i + 1 + i % 3) % 10});
  std::erase_if(islands, [](const auto& p) { return p.first == p.second; });
  uint64_t seed = base_seed();
  for (const Pairs& pairs : {star, hubs, clique, path, grid, islands}) {
    for (const double epsilon : {0.0, 0.1, 1.0}) {
      for (const Weights kind : {Weights::kEqual, Weights::kFew, Weights::kMany}) {
        shape_updates(pairs, epsilon, kind, ++seed);
      }
    }
  }
}

TEST(engine_threads_do_not_matter) {
  Random random(base_seed());
  std::vector<std::unique_ptr<World>> worlds;
  for (const uint32_t threads : {1, 2, 5})
    worlds.push_back(std::make_unique<World>(0.1, 0, threads));
  BatchData build;
  for (int64_t i = 0; i < 6000; ++i) {
    build.add.push_back(i);
    for (int64_t k = 0; k < 8 && i > 0; ++k) {
      const int64_t other = std::max<int64_t>(0, i - 1 - random.below(40));
      bool listed = false;
      for (size_t e = build.u.size(); e-- > 0 && build.u[e] == i;) listed |= build.v[e] == other;
      if (!listed) build.edge(i, other, draw(random, Weights::kFew));
    }
  }
  BatchData more;  // removes a third; adds half of that again with other edges
  for (int64_t i = 0; i < 2000; ++i) more.remove.push_back(3 * i);
  for (int64_t i = 0; i < 1000; ++i) {
    more.add.push_back(6 * i);
    more.edge(6 * i, 6 * i + 1, 0.5);
    more.edge(6 * i, 6 * i + 4, 0.5);
  }
  for (auto& world : worlds) {
    world->apply(build);
    EXPECT(world->engine.snapshot() == worlds[0]->engine.snapshot());
    world->expect_right();
  }
  for (auto& world : worlds) {
    world->apply(more);
    EXPECT(world->engine.snapshot() == worlds[0]->engine.snapshot());
  }
}

TEST(engine_readers_see_whole_updates) {
  Random random(base_seed());
  World world(0.1, 0, 2);
  std::atomic<bool> done{false};
  std::atomic<int64_t> torn{0};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        while (!done) {
          const Engine::Export all = world.engine.export_all();
          torn += !all.wrong_caches.empty();
          torn += world.engine.keys().size() > 1000;
        }
      });
    }
    for (int step = 0; step < 60; ++step) {
      const BatchData batch = random_batch(random, world, Weights::kFew, 100, 8);
      world.apply(batch);
      world.next_id += static_cast<int64_t>(batch.add.size());
    }
    done = true;
  }
  EXPECT_EQ(torn.load(), 0);
  world.expect_right();
}

// Epochs mark the records that an update has saved; they have 32 bits and wrap around.
TEST(engine_epochs_may_wrap) {
  Random random(base_seed());
  World world(0.1, 0);
  World twin(0.1, 0);
  world.engine.start_epochs_at(std::numeric_limits<uint32_t>::max() - 5);
  for (int step = 0; step < 20; ++step) {
    const BatchData batch = random_batch(random, world, Weights::kFew, 60, 6);
    world.apply(batch);
    twin.apply(batch);
    world.next_id += static_cast<int64_t>(batch.add.size());
    BatchData bad;  // rolled back
    bad.add = {world.next_id + 5000, world.next_id + 5001};
    bad.edge(world.next_id + 5000, world.next_id + 5001, -1);
    EXPECT_THROWS(BatchError, world.engine.update(bad.view(), nullptr));
    world.expect_right();
    EXPECT(world.engine.snapshot() == twin.engine.snapshot());
  }
}

}  // namespace
}  // namespace dynhac::testing
