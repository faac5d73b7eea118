// Placements of vertices that are not in the graph, against the rule on the whole dendrogram.

#include <algorithm>
#include <set>
#include <vector>

#include "core/tests/engine_world.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using testing::BatchData;
using testing::World;

struct Expected {
  double similarity = 0;
  std::set<int64_t> leaves;                      // keys below the nodes that may be joined
  std::set<std::pair<int64_t, uint32_t>> nodes;  // their ids and sizes; the id of a leaf is -1
};

Expected naive_place(const Engine& engine, const std::vector<int64_t>& keys,
                     const std::vector<double>& weights) {
  const Snapshot s = engine.snapshot();
  const size_t n = s.keys.size(), nodes = n + s.size.size();
  std::vector<std::set<int64_t>> leaves(nodes);
  std::vector<size_t> parent(nodes, nodes);
  for (size_t i = 0; i < n; ++i) leaves[i] = {s.keys[i]};
  for (size_t j = 0; j < s.size.size(); ++j) {
    for (const int64_t child : {s.children[2 * j], s.children[2 * j + 1]}) {
      const auto& below = leaves[static_cast<size_t>(child)];
      leaves[n + j].insert(below.begin(), below.end());
      parent[static_cast<size_t>(child)] = n + j;
    }
  }
  Expected expected;
  for (size_t node = 0; node < nodes; ++node) {
    Weight total = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (leaves[node].contains(keys[i])) total += std::llround(weights[i] / World::kResolution);
    }
    if (total == 0) continue;
    const double l =
        linkage(total, 1, static_cast<uint32_t>(leaves[node].size())) * World::kResolution;
    if (parent[node] < nodes && l < s.similarity[parent[node] - n]) continue;
    const double similarity = node < n ? l : std::min(l, s.min_similarity[node - n]);
    if (similarity > expected.similarity) expected = {similarity, {}, {}};
    if (similarity == expected.similarity) {
      expected.nodes.emplace(node < n ? -1 : s.node_ids[node - n], leaves[node].size());
      expected.leaves.insert(leaves[node].begin(), leaves[node].end());
    }
  }
  return expected;
}

void expect_placements_right(const World& world, Random& random) {
  for (int round = 0; round < 4; ++round) {
    std::vector<int64_t> keys(world.ids.begin(), world.ids.end());
    random.shuffle(keys);
    keys.resize(std::min(keys.size(), static_cast<size_t>(random.below(9))));
    std::vector<double> weights;
    for (size_t i = 0; i < keys.size(); ++i) {
      weights.push_back(random.chance(0.3) ? 0.5 : 0.001 + random.uniform());
    }
    const Snapshot before = world.engine.snapshot();
    const Placement placement = world.engine.place(keys, weights);
    EXPECT(world.engine.snapshot() == before);
    const Expected expected = naive_place(world.engine, keys, weights);
    EXPECT_EQ(placement.similarity, expected.similarity);
    if (keys.empty()) {
      EXPECT_EQ(placement.edge, Placement::kNoEdge);
      EXPECT_EQ(placement.node, -1);
      EXPECT_EQ(placement.size, 0u);
    } else {
      EXPECT(expected.leaves.contains(keys[placement.edge]));
      EXPECT(expected.nodes.contains({placement.node, placement.size}));
    }
  }
}

TEST(placements_follow_the_rule) {
  for (uint64_t round = 0; round < 60; ++round) {
    Random random(testing::base_seed() + round);
    World world(std::vector{0.0, 0.1, 1.0}[round % 3], 0.01);
    for (int step = 0; step < 8; ++step) {
      BatchData batch;
      for (const int64_t id : world.ids) {
        if (random.chance(0.1)) batch.remove.push_back(id);
      }
      std::vector<int64_t> all;
      for (const int64_t id : world.ids) {
        if (!std::ranges::binary_search(batch.remove, id)) all.push_back(id);
      }
      for (int64_t i = random.below(20); i >= 0; --i) {
        batch.add.push_back(world.next_id);
        all.push_back(world.next_id++);
      }
      const bool star = random.chance(0.3);
      for (size_t i = 1; i < all.size(); ++i) {
        const int64_t other =
            star ? all[0] : all[static_cast<size_t>(random.below(static_cast<int64_t>(i)))];
        if (random.chance(0.8)) batch.edge(all[i], other, 0.05 + random.uniform());
      }
      world.apply(batch);
      expect_placements_right(world, random);
    }
  }
}

TEST(placements_reject_what_an_update_rejects) {
  World world(0.1, 0.01);
  BatchData batch;
  batch.add = {1, 2, 3};
  batch.edge(1, 2, 0.5);
  world.apply(batch);
  auto kind_of = [&](std::vector<int64_t> keys, std::vector<double> weights) {
    try {
      world.engine.place(keys, weights);
    } catch (const BatchError& error) {
      return std::string(error.kind) + " " + std::to_string(error.index);
    }
    return std::string();
  };
  EXPECT_EQ(kind_of({1, 9}, {0.5, 0.5}), std::string("unknown 1"));
  EXPECT_EQ(kind_of({1, 2}, {0.5, 0.0}), std::string("weight_invalid 1"));
  EXPECT_EQ(kind_of({1, 2}, {1e-12, 0.5}), std::string("weight_underflow 0"));
  EXPECT_EQ(kind_of({1}, {0x1p31}), std::string("weight_overflow 0"));
  EXPECT_EQ(kind_of({1, 2, 3}, {0x1p29, 0x1p29, 0x1p29}), std::string("total_overflow 1"));
  EXPECT_EQ(kind_of({1, 2}, {0.5, 0.25}), std::string());
}

}  // namespace
}  // namespace dynhac
