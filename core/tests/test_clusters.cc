// What is in clusters, against sums over a plain map of edges; versions, wrong labels and failures.

#include <cmath>
#include <optional>

#include "core/tests/engine_world.h"

namespace dynhac::testing {
namespace {

// A random graph whose weights are exact multiples of 1/8.
void grow(World& world, Random& random, int64_t n) {
  BatchData batch;
  for (int64_t i = 0; i < n; ++i) {
    batch.add.push_back(1000 - i);
    for (int64_t k = random.below(6); k-- > 0 && i > 0;) {
      const int64_t other = 1000 - random.below(i);
      batch.edge(1000 - i, other, 0.125 * static_cast<double>(1 + (i * other) % 7));
    }
  }
  world.apply(batch);
}

double weight(const World& world, int64_t a, int64_t b) {
  const auto found = world.edges.find(std::minmax(a, b));
  return found == world.edges.end() ? 0 : found->second;
}

void expect_right(const World& world, std::span<const int64_t> labels, int64_t count,
                  const ClusterSummary& s, int64_t first, int64_t end) {
  const Vec<int64_t> keys = world.engine.keys();
  auto inside = [&](size_t i) {
    double sum = 0;
    for (size_t j = 0; j < keys.size(); ++j) {
      if (labels[i] >= 0 && labels[j] == labels[i]) sum += weight(world, keys[i], keys[j]);
    }
    return sum;
  };
  EXPECT_EQ(s.start.size(), static_cast<size_t>(end - first + 1));
  for (int64_t c = first; c < end; ++c) {
    const size_t at = static_cast<size_t>(c - first);
    std::vector<std::pair<double, int64_t>> ranked;
    std::vector<double> between(static_cast<size_t>(count), 0);
    std::vector<double> sizes(static_cast<size_t>(count), 0);
    double total = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (labels[i] >= 0) sizes[static_cast<size_t>(labels[i])] += 1;
      if (labels[i] != c) continue;
      ranked.push_back({-inside(i), static_cast<int64_t>(i)});
      total += inside(i);
      for (size_t j = 0; j < keys.size(); ++j) {
        if (labels[j] < 0 || labels[j] == c) continue;
        between[static_cast<size_t>(labels[j])] += weight(world, keys[i], keys[j]);
      }
    }
    std::sort(ranked.begin(), ranked.end());
    EXPECT_EQ(s.start[at + 1] - s.start[at], static_cast<int64_t>(ranked.size()));
    for (size_t i = 0; i < ranked.size(); ++i) {
      EXPECT_EQ(s.members[static_cast<size_t>(s.start[at]) + i], ranked[i].second);
    }
    const double size = static_cast<double>(ranked.size());
    if (size > 1) {
      EXPECT(std::abs(s.cohesion[at] - total / (size * (size - 1))) < 1e-12);
    } else {
      EXPECT(std::isnan(s.cohesion[at]) && s.node_ids[at] == -1);
    }
    std::vector<std::pair<double, int64_t>> near;
    for (int64_t other = 0; other < count; ++other) {
      const double w = between[static_cast<size_t>(other)];
      if (w > 0) near.push_back({-w / (size * sizes[static_cast<size_t>(other)]), other});
    }
    std::sort(near.begin(), near.end());
    near.resize(std::min<size_t>(near.size(), 3));
    const size_t begin = static_cast<size_t>(s.nearest_start[at]);
    EXPECT_EQ(static_cast<size_t>(s.nearest_start[at + 1]) - begin, near.size());
    for (size_t i = 0; i < near.size(); ++i) {
      EXPECT_EQ(s.nearest[begin + i], near[i].second);
      EXPECT(std::abs(s.nearest_linkage[begin + i] + near[i].first) < 1e-12);
    }
  }
}

TEST(clusters_of_random_labels_and_cuts) {
  uint64_t seed = base_seed();
  for (const int64_t n : {0, 1, 2, 7, 60}) {
    for (int round = 0; round < 8; ++round) {
      Random random(++seed);
      World world(round % 2 == 0 ? 0.0 : 0.1, 0.01);
      grow(world, random, n);
      const int64_t count = 1 + random.below(8);
      Vec<int64_t> labels;
      for (int64_t i = 0; i < n; ++i) labels.push_back(random.below(count + 1) - 1);
      const int64_t version = world.engine.version();
      const auto all = world.engine.summarize(version, labels, count, std::nullopt, 3);
      EXPECT(all.has_value());
      expect_right(world, labels, count, *all, 0, count);
      const int64_t one = random.below(count);
      const auto only = world.engine.summarize(version, labels, count, one, 3);
      expect_right(world, labels, count, *only, one, one + 1);

      const Snapshot s = world.engine.snapshot();
      const double theta[] = {0.2};
      labels.resize(s.keys.size());
      cut(n, s.children, s.min_similarity, theta, labels);
      const auto clusters = world.engine.summarize(version, labels, n, std::nullopt, 3);
      for (size_t c = 0; c < static_cast<size_t>(n); ++c) {
        const int64_t size = clusters->start[c + 1] - clusters->start[c];
        EXPECT_EQ(clusters->node_ids[c] >= 0, size > 1);
        if (size > 1) EXPECT(clusters->similarity[c] >= 0.2 - World::kResolution);
      }
    }
  }
}

TEST(clusters_of_another_version_and_wrong_labels) {
  World world(0.1, 0.01);
  Random random(base_seed());
  grow(world, random, 20);
  const int64_t version = world.engine.version();
  const Vec<int64_t> labels(20, 0);
  EXPECT(!world.engine.summarize(version - 1, labels, 1, std::nullopt, 3).has_value());
  EXPECT(!world.engine.summarize(version + 1, labels, 1, std::nullopt, 3).has_value());
  auto rejected = [&](std::span<const int64_t> wrong, int64_t count, std::optional<int64_t> only) {
    try {
      world.engine.summarize(version, wrong, count, only, 3);
      return false;
    } catch (const std::invalid_argument&) {
      return true;
    }
  };
  EXPECT(rejected(std::span(labels).first(19), 1, std::nullopt));
  EXPECT(rejected(labels, 0, std::nullopt));
  EXPECT(rejected(labels, -1, std::nullopt));
  EXPECT(rejected(labels, int64_t{1} << 40, std::nullopt));
  EXPECT(rejected(labels, 1, 1));
  EXPECT(rejected(labels, 1, -1));
  EXPECT(rejected(Vec<int64_t>(20, -2), 1, std::nullopt));
}

TEST(clusters_without_memory) {
  World world(0.1, 0.01);
  Random random(base_seed());
  grow(world, random, 40);
  Vec<int64_t> labels;
  for (int64_t i = 0; i < 40; ++i) labels.push_back(i % 5);
  const int64_t version = world.engine.version();
  int failures = 0;
  for (int64_t after = 0;; ++after) {
    fail_allocation(after);
    try {
      const auto found = world.engine.summarize(version, labels, 5, std::nullopt, 3);
      fail_allocation(-1);
      expect_right(world, labels, 5, *found, 0, 5);
      break;
    } catch (const std::bad_alloc&) {
      ++failures;
    }
  }
  EXPECT(failures > 10);
}

}  // namespace
}  // namespace dynhac::testing
