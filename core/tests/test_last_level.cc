// The last level: components that are merged completely, made and given up as a graph changes.

#include <map>
#include <set>

#include "core/base/parallel.h"
#include "core/hierarchy/last_level.h"
#include "core/hierarchy/state.h"
#include "core/tests/engine_world.h"
#include "core/tests/plain.h"
#include "core/tests/random_batches.h"

namespace dynhac::testing {
namespace {

using Clusters = std::set<std::vector<int64_t>>;

std::vector<SavedColumn> saved(const Engine& engine) {
  std::vector<SavedColumn> columns;
  Workers alone(1);
  for (size_t i = 0; i < EngineState::names(engine).size(); ++i) {
    columns.push_back(EngineState::save(engine, i, alone));
  }
  return columns;
}

std::unique_ptr<Engine> loaded(const Engine& engine, const World& world) {
  const std::vector<std::string> names = EngineState::names(engine);
  const std::vector<SavedColumn> columns = saved(engine);
  StateColumns view;
  for (size_t i = 0; i < names.size(); ++i) {
    view[names[i]] = std::visit(
        [](const auto& values) -> StateColumn { return std::span(values.data(), values.size()); },
        columns[i]);
  }
  return EngineState::load({world.epsilon, world.threshold, World::kResolution, 1}, view);
}

int64_t last_level(const Engine& engine) {
  Workers alone(1);
  return std::get<Vec<int64_t>>(EngineState::save(engine, 0, alone))[4];
}

int64_t vertices(const Engine& engine) {
  int64_t sum = 0;
  for (const auto& [vertices, edges] : engine.level_sizes()) sum += vertices;
  return sum;
}

// The clusters of exact clustering, by trying all pairs. Similarities must differ.
Clusters exact_clusters(const World& world) {
  std::vector<std::vector<int64_t>> live;
  std::map<int64_t, size_t> at;
  for (const int64_t id : world.ids) {
    at[id] = live.size();
    live.push_back({id});
  }
  const size_t n = live.size();
  std::vector<std::vector<Weight>> weight(n, std::vector<Weight>(n, 0));
  for (const auto& [pair, w] : world.edges) {
    const size_t a = at[pair.first], b = at[pair.second];
    weight[a][b] = weight[b][a] = std::llround(w / World::kResolution);
  }
  Clusters clusters;
  for (;;) {
    double most = 0;
    size_t x = 0, y = 0;
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (weight[a][b] == 0) continue;
        const double l = linkage(weight[a][b], static_cast<int64_t>(live[a].size()),
                                 static_cast<int64_t>(live[b].size()));
        if (l > most) most = l, x = a, y = b;
      }
    }
    if (most == 0 || most * World::kResolution < world.threshold) return clusters;
    live[x].insert(live[x].end(), live[y].begin(), live[y].end());
    std::ranges::sort(live[x]);
    live[y].clear();
    clusters.insert(live[x]);
    for (size_t c = 0; c < n; ++c) {
      weight[x][c] += weight[y][c];
      weight[c][x] = weight[x][c];
      weight[y][c] = weight[c][y] = 0;
    }
    weight[x][x] = 0;
  }
}

Clusters clusters_of(const Engine& engine) {
  const Snapshot s = engine.snapshot();
  const size_t n = s.keys.size();
  std::vector<std::vector<int64_t>> members(n + s.similarity.size());
  for (size_t i = 0; i < n; ++i) members[i] = {s.keys[i]};
  Clusters clusters;
  for (size_t j = 0; j < s.similarity.size(); ++j) {
    std::vector<int64_t>& all = members[n + j];
    for (const int64_t child : {s.children[2 * j], s.children[2 * j + 1]}) {
      all.insert(all.end(), members[child].begin(), members[child].end());
    }
    std::ranges::sort(all);
    clusters.insert(all);
  }
  return clusters;
}

// Paths with monotone weights, lines with growing gaps, a hub and a lollipop, side by side.
class Chains {
 public:
  Chains(World& world, uint64_t seed) : world_(world), random_(seed) {}

  void add(int64_t count) {
    BatchData batch;
    const int64_t first = world_.next_id, kind = random_.below(4);
    world_.next_id += count;
    for (int64_t i = 0; i < count; ++i) batch.add.push_back(first + i);
    for (int64_t i = 1; i < count; ++i) {
      const auto x = static_cast<double>(i);
      if (kind == 0) batch.edge(first + i - 1, first + i, 1 - x / 1000 + jitter());
      if (kind == 1) {  // a line whose gaps grow, everyone joined to the next two
        for (int64_t k = 1; k <= std::min<int64_t>(i, 2); ++k) {
          batch.edge(first + i - k, first + i,
                     1 / (1 + x * static_cast<double>(k) / 50) + jitter());
        }
      }
      if (kind == 2) batch.edge(first, first + i, 1 - x / 1000 + jitter());
      if (kind == 3) {  // a clique with a tail
        for (int64_t k = 1; k <= (i < 8 ? i : 1); ++k) {
          batch.edge(first + i - k, first + i, 0.9 - x / 1000 + jitter());
        }
      }
    }
    apply(batch);
  }

  void change() {
    BatchData batch;
    const int64_t what = random_.below(6);
    if (what == 0 && world_.ids.size() > 1) {  // often cuts a component
      batch.remove = {random_.pick(world_.ids)};
    } else if (what == 1 && !world_.edges.empty()) {
      const auto pair = random_.pick(world_.edges).first;
      batch.remove_u = {pair.first};
      batch.remove_v = {pair.second};
    } else if (what == 2 && !world_.edges.empty()) {
      const auto [pair, w] = random_.pick(world_.edges);
      batch.edge(pair.first, pair.second, w * (0.9 + 0.2 * random_.uniform()) + jitter());
    } else if (what == 3 && !world_.edges.empty()) {
      const auto pair = random_.pick(world_.edges).first;
      batch.edge(pair.first, pair.second, random_.uniform() + 1e-3);
    } else if (world_.ids.size() > 1) {  // often joins two components
      const int64_t a = random_.pick(world_.ids), b = random_.pick(world_.ids);
      if (a != b) batch.edge(a, b, random_.uniform() + 1e-3);
    }
    apply(batch);
  }

  void shrink(int64_t count) {
    BatchData batch;
    for (const int64_t id : world_.ids) {
      if (static_cast<int64_t>(batch.remove.size()) < count && random_.below(2)) {
        batch.remove.push_back(id);
      }
    }
    apply(batch);
  }

  Random& random() { return random_; }
  int64_t made = 0, given_up = 0;  // last levels

 private:
  double jitter() { return 1e-4 * random_.uniform(); }

  void apply(const BatchData& batch) {
    const int64_t before = last_level(world_.engine);
    world_.apply(batch);
    const int64_t now = last_level(world_.engine);
    made += now >= 0 && now != before;
    given_up += now < 0 && before >= 0;
  }

  World& world_;
  Random random_;
};

// Bounds that change all the time make a last level, make it lower, and give it up.
TEST(last_level_of_chains_stays_right) {
  const std::vector<uint64_t> bounds = {0, 1, 2, 3, 5, 30};
  uint64_t seed = base_seed();
  int64_t made = 0, given_up = 0;
  for (const double epsilon : {0.0, 0.001, 0.1, 1.0}) {
    for (const double threshold : {0.0, 0.2}) {
      for (const bool changing : {false, true}) {
        for (const uint64_t most : {0, 2}) {
          World world(epsilon, threshold);
          world.follow(0.2, 1);
          world.follow(std::nullopt, 3);
          Chains chains(world, ++seed);
          for (int step = 0; step < 42 && state().failures == 0; ++step) {
            const Bound bound(changing ? chains.random().pick(bounds) : most, 0);
            if (step % 3 == 0) chains.add(4 + chains.random().below(24));
            if (step % 14 == 13) chains.shrink(static_cast<int64_t>(world.ids.size()));
            chains.change();
            world.expect_right();
            if (epsilon == 0) EXPECT(clusters_of(world.engine) == exact_clusters(world));
          }
          made += chains.made;
          given_up += chains.given_up;
        }
      }
    }
  }
  EXPECT(made > 100);
  EXPECT(given_up > 30);
}

TEST(last_level_under_random_updates_stays_right) {
  uint64_t seed = base_seed();
  for (const double epsilon : {0.0, 0.1}) {
    for (const Weights kind : {Weights::kEqual, Weights::kFew, Weights::kMany, Weights::kWide}) {
      for (const uint64_t most : {0, 1, 2}) {
        const Bound bound(most, most == 0 ? 0 : 20);
        Random random(++seed);
        World world(epsilon, 0.05);
        world.follow(0.2, 1);
        for (int step = 0; step < 40 && state().failures == 0; ++step) {
          const BatchData batch = random_batch(random, world, kind, 80, 2 + random.below(10));
          world.apply(batch);
          world.next_id += static_cast<int64_t>(batch.add.size());
          world.expect_right();
        }
      }
    }
  }
}

BatchData monotone_path(int64_t n) {
  BatchData batch;
  for (int64_t i = 0; i < n; ++i) batch.add.push_back(i);
  for (int64_t i = 1; i < n; ++i)
    batch.edge(i - 1, i, 1 - 0.5 * static_cast<double>(i) / static_cast<double>(n));
  return batch;
}

TEST(last_level_bounds_the_levels_of_a_monotone_path) {
  World world(0, 0);
  world.apply(monotone_path(6000));
  EXPECT(last_level(world.engine) > 10);
  EXPECT(vertices(world.engine) < 34 * 6000 + (1 << 14));
  world.expect_right();
  // The merges that an update does not concern stay as they are.
  BatchData light;
  light.edge(5998, 5999, 0.4);
  EXPECT_EQ(world.apply(light).created.size(), size_t{1});
  world.expect_right();
}

TEST(last_level_is_not_made_of_ordinary_graphs) {
  Random random(base_seed());
  World world(0, 0);
  BatchData build;
  for (int64_t i = 0; i < 5000; ++i) build.add.push_back(i);
  for (int64_t i = 1; i < 5000; ++i) {
    std::set<int64_t> others;
    for (int k = 0; k < 5; ++k) others.insert(random.below(i));
    for (const int64_t other : others) build.edge(i, other, 0.1 + random.uniform());
  }
  world.apply(build);
  EXPECT_EQ(last_level(world.engine), -1);
}

// It must be given up and made again only when the graph has changed much.
TEST(last_level_stays_while_a_path_changes_little) {
  const Bound bound(4, 0);
  World world(0, 0);
  world.apply(monotone_path(200));
  const int64_t last = last_level(world.engine);
  EXPECT(last > 0);
  for (int64_t i = 200; i < 320; ++i) {
    BatchData batch;
    batch.add = {i};
    batch.edge(i - 1, i, 0.5 - 1e-4 * static_cast<double>(i));
    world.apply(batch);
    EXPECT_EQ(last_level(world.engine), last);
  }
  for (int64_t i = 320; i-- > 160;) {
    BatchData batch;
    batch.remove = {i};
    world.apply(batch);
    EXPECT_EQ(last_level(world.engine), last);
  }
  world.expect_right();
  BatchData rest;
  for (int64_t i = 4; i < 160; ++i) rest.remove.push_back(i);
  world.apply(rest);
  EXPECT_EQ(last_level(world.engine), -1);
  world.expect_right();
}

TEST(last_level_is_saved) {
  uint64_t seed = base_seed();
  for (const double epsilon : {0.0, 0.1}) {
    const Bound bound(1, 10);
    World world(epsilon, 0);
    Chains chains(world, ++seed);
    for (int round = 0; round < 8; ++round) {
      chains.add(40);
      chains.change();
      const auto twin = loaded(world.engine, world);
      EXPECT(saved(*twin) == saved(world.engine));
      EXPECT_EQ(twin->export_all().wrong_caches.size(), size_t{0});
      BatchData batch;
      batch.add = {-1 - round};
      batch.edge(-1 - round, *world.ids.rbegin(), 0.7);
      batch.edge(-1 - round, *world.ids.begin(), 0.1);
      const Change a = world.apply(batch), b = twin->update(batch.view(), nullptr);
      EXPECT(a.counters == b.counters && a.created == b.created && a.removed == b.removed);
      EXPECT(saved(*twin) == saved(world.engine));
    }
    EXPECT(last_level(world.engine) >= 0);
  }
}

TEST(last_level_does_not_depend_on_threads) {
  const Bound bound(1, 0);
  for (const size_t divisor : {1, 64}) {
    internal::range_divisor = divisor;
    std::vector<std::unique_ptr<World>> worlds;
    for (const uint32_t threads : {1, 2, 3, 7, 16}) {
      worlds.push_back(std::make_unique<World>(0.001, 0, threads));
      Chains chains(*worlds.back(), base_seed());
      for (int i = 0; i < 30; ++i) chains.add(60);
      chains.shrink(300);
      for (int i = 0; i < 20; ++i) chains.change();
      EXPECT(chains.made > 0);
      EXPECT(saved(worlds.back()->engine) == saved(worlds[0]->engine));
    }
    worlds.back()->expect_right();
  }
  internal::range_divisor = 1;
}

// Makes and gives up a last level with every allocation failing in turn.
TEST(last_level_is_rolled_back) {
  for (const uint64_t most : {1, 30}) {  // after the build with the other one
    std::vector<SavedColumn> wanted;
    for (int64_t after = 0;; after += 1 + after / 20) {
      World world(0, 0);
      {
        const Bound bound(31 - most, 0);
        world.apply(monotone_path(50));
      }
      const Bound bound(most, 0);
      const int64_t last = last_level(world.engine);
      const std::vector<SavedColumn> before = saved(world.engine);
      BatchData batch;
      batch.edge(20, 21, 0.1);
      batch.remove = {30};
      const bool failed = fails_at(after, [&] { world.engine.update(batch.view(), nullptr); });
      if (failed) {
        EXPECT(saved(world.engine) == before);
        world.engine.update(batch.view(), nullptr);
      }
      world.note(batch);
      EXPECT(last_level(world.engine) != last);
      if (wanted.empty()) {
        world.expect_right();
        wanted = saved(world.engine);
      }
      EXPECT(saved(world.engine) == wanted);
      if (!failed) {
        EXPECT(after > 50);
        break;
      }
    }
  }
}

}  // namespace
}  // namespace dynhac::testing
