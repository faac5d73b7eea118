// check() against a naive replay on small random graphs, and on large stars, cliques and paths,
// which take too long unless the work is near-linear.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/tests/check_input.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using Leaves = std::vector<size_t>;

// Computes everything by its definition, on sets of leaves.
class Naive {
 public:
  explicit Naive(const CheckInput& input) : in_(input), weight_(at(in_.n), Row(at(in_.n), 0)) {
    for (size_t i = 0; i < in_.u.size(); ++i) {
      weight_[at(in_.u[i])][at(in_.v[i])] += static_cast<double>(in_.w[i]);
      weight_[at(in_.v[i])][at(in_.u[i])] += static_cast<double>(in_.w[i]);
    }
    for (size_t x = 0; x < at(in_.n); ++x) leaves_.push_back({x});
    for (size_t j = 0; j < in_.level.size(); ++j) {
      leaves_.push_back(leaves_[child(j, 0)]);
      const Leaves& other = leaves_[child(j, 1)];
      leaves_.back().insert(leaves_.back().end(), other.begin(), other.end());
    }
  }

  // The linkage of two sets of leaves.
  double linkage(const Leaves& a, const Leaves& b) const {
    double sum = 0;
    for (const size_t x : a) {
      for (const size_t y : b) sum += weight_[x][y];
    }
    return sum / static_cast<double>(a.size() * b.size());
  }

  CheckResult run() const {
    CheckResult result;
    std::vector<double> min_merge(leaves_.size(), std::numeric_limits<double>::infinity());
    const double light = in_.threshold / (1 + in_.epsilon);
    for (size_t j = 0; j < in_.level.size(); ++j) {
      const size_t ca = child(j, 0), cb = child(j, 1);
      const double own = linkage(leaves_[ca], leaves_[cb]);
      double most = own;
      for (const Leaves& y : vertices(in_.level[j])) {
        if (meet(y, leaves_[ca]) || meet(y, leaves_[cb])) continue;
        most = std::max({most, linkage(leaves_[ca], y), linkage(leaves_[cb], y)});
      }
      const double least = std::min({own, min_merge[ca], min_merge[cb]});
      min_merge[at(in_.n) + j] = least;
      ++result.merges;
      const bool good = own > 0 && most <= (1 + in_.epsilon) * least * (1 + 0x1p-40) &&
                        own * in_.resolution >= light * (1 - 0x1p-40);
      result.bad_merges += !good;
      result.worst_goodness = std::max(
          result.worst_goodness, own > 0 ? most / least : std::numeric_limits<double>::infinity());
      const double real = own * in_.resolution;
      result.wrong_similarities += std::abs(in_.similarity[j] - real) > 1e-12 * real;
    }
    const auto left = vertices(std::numeric_limits<int32_t>::max());
    for (size_t i = 0; i < left.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const double own = linkage(left[i], left[k]);
        result.heavy_edges_left += own > 0 && own * in_.resolution >= light * (1 + 0x1p-40);
      }
    }
    return result;
  }

 private:
  using Row = std::vector<double>;

  static size_t at(int64_t index) { return static_cast<size_t>(index); }
  size_t child(size_t merge, size_t which) const { return at(in_.children[2 * merge + which]); }

  static bool meet(const Leaves& a, const Leaves& b) {
    return std::any_of(a.begin(), a.end(),
                       [&b](size_t x) { return std::find(b.begin(), b.end(), x) != b.end(); });
  }

  // The clusters made by the merges of smaller levels.
  std::vector<Leaves> vertices(int32_t level) const {
    std::vector<bool> present(leaves_.size(), false);
    std::fill_n(present.begin(), in_.n, true);
    for (size_t j = 0; j < in_.level.size(); ++j) {
      if (in_.level[j] >= level) continue;
      present[at(in_.n) + j] = true;
      present[child(j, 0)] = present[child(j, 1)] = false;
    }
    std::vector<Leaves> result;
    for (size_t x = 0; x < leaves_.size(); ++x) {
      if (present[x]) result.push_back(leaves_[x]);
    }
    return result;
  }

  const CheckInput& in_;
  std::vector<Row> weight_;
  std::vector<Leaves> leaves_;
};

// A random graph and random merges, some of a heaviest pair and some of any pair. Often there are
// few distinct weights, to get many ties.
CheckInput random_input(Random& random) {
  CheckInput input(1 + random.below(14));
  const double density = random.uniform();
  const int64_t weights = random.chance(0.5) ? 3 : 1000;
  for (int64_t b = 0; b < input.n; ++b) {
    for (int64_t a = 0; a < b; ++a) {
      if (!random.chance(density)) continue;
      const int64_t weight = 1 + random.below(weights);
      random.chance(0.5) ? input.edge(a, b, weight) : input.edge(b, a, weight);
    }
  }
  input.epsilon = static_cast<double>(random.below(3)) * 0.3;
  input.resolution = random.chance(0.5) ? 1.0 : 0x1p-20;
  input.threshold = random.chance(0.3) ? 0 : random.uniform() * 3 * input.resolution;

  const double carefulness = random.uniform(), steepness = random.uniform();
  std::vector<Leaves> sets;
  std::vector<int64_t> nodes, levels;
  for (int64_t x = 0; x < input.n; ++x) {
    sets.push_back({static_cast<size_t>(x)});
    nodes.push_back(x);
    levels.push_back(0);
  }
  const Naive plain(input);
  for (int64_t merges = random.below(input.n); merges > 0; --merges) {
    size_t a = 1, b = 0;
    double best = -1;
    const bool careful = random.chance(carefulness);
    for (size_t i = 0; i < sets.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const double score = careful ? plain.linkage(sets[i], sets[k]) : random.uniform();
        if (score > best) best = score, a = i, b = k;
      }
    }
    const double real = plain.linkage(sets[a], sets[b]) * input.resolution;
    const int64_t level = std::max(levels[a], levels[b]) + random.chance(steepness);
    input.merge(nodes[a], nodes[b], random.chance(0.1) ? real + 1 : real,
                static_cast<int32_t>(level));
    nodes[b] = input.last_node();
    levels[b] = level;
    sets[b].insert(sets[b].end(), sets[a].begin(), sets[a].end());
    const auto gone = static_cast<std::ptrdiff_t>(a);
    sets.erase(sets.begin() + gone);
    nodes.erase(nodes.begin() + gone);
    levels.erase(levels.begin() + gone);
  }
  return input;
}

TEST(check_follows_a_naive_replay) {
  int64_t good = 0, bad = 0;
  for (uint64_t round = 0; round < 5000; ++round) {
    Random random(testing::base_seed() + round);
    const CheckInput input = random_input(random);
    const CheckResult result = input.run(), expected = Naive(input).run();
    EXPECT_EQ(result.merges, expected.merges);
    EXPECT_EQ(result.bad_merges, expected.bad_merges);
    EXPECT_EQ(result.wrong_similarities, expected.wrong_similarities);
    EXPECT_EQ(result.heavy_edges_left, expected.heavy_edges_left);
    EXPECT(result.worst_goodness == expected.worst_goodness ||
           std::abs(result.worst_goodness - expected.worst_goodness) <
               1e-12 * result.worst_goodness);
    bad += result.bad_merges;
    good += result.merges - result.bad_merges;
  }
  EXPECT(good > 5000);  // both verdicts were tested
  EXPECT(bad > 5000);
}

TEST(check_star) {
  // The hub absorbs the leaves in the order of their weights, in one group: all good.
  CheckInput input(100'001);
  int64_t hub = 0;
  for (int64_t i = 1; i < input.n; ++i) {
    const int64_t weight = 2 * input.n - i;
    input.edge(0, i, weight);
    hub = input.merge(hub, i, static_cast<double>(weight) / static_cast<double>(i), 0).last_node();
  }
  const CheckResult result = input.run();
  EXPECT_EQ(result.bad_merges + result.wrong_similarities + result.heavy_edges_left, 0);
  EXPECT_EQ(result.worst_goodness, 1.0);
}

TEST(check_clique) {
  // All linkages stay equal, so every merge is good: here a chain, in one group.
  CheckInput input(1000);
  int64_t chain = 0;
  for (int64_t b = 1; b < input.n; ++b) {
    for (int64_t a = 0; a < b; ++a) input.edge(a, b, 7);
    chain = input.merge(b, chain, 7, 0).last_node();
  }
  const CheckResult result = input.run();
  EXPECT_EQ(result.bad_merges + result.wrong_similarities + result.heavy_edges_left, 0);
  EXPECT(std::abs(result.worst_goodness - 1) < 1e-12);
}

TEST(check_path) {
  // Halves of halves. Blocks of 2^l vertices have linkage 4^-l with the next block, and 2^-l with
  // the single vertex there: good with a level for every l, a factor of 2^l off in a single group.
  // Only the last merge has nothing outside.
  constexpr int64_t kHeight = 16;
  for (const bool one_group : {false, true}) {
    CheckInput input(int64_t{1} << kHeight);
    std::vector<int64_t> blocks = {0};
    for (int64_t i = 1; i < input.n; ++i) {
      input.edge(i - 1, i, 1);
      blocks.push_back(i);
    }
    for (int32_t l = 0; blocks.size() > 1; ++l) {
      std::vector<int64_t> pairs;
      for (size_t i = 0; i < blocks.size(); i += 2) {
        const double similarity = std::ldexp(1.0, -2 * l);
        input.merge(blocks[i], blocks[i + 1], similarity, one_group ? 0 : l);
        pairs.push_back(input.last_node());
      }
      blocks.swap(pairs);
    }
    const CheckResult result = input.run();
    EXPECT_EQ(result.wrong_similarities + result.heavy_edges_left, 0);
    EXPECT_EQ(result.worst_goodness, one_group ? std::ldexp(1.0, kHeight - 2) : 1.0);
    EXPECT_EQ(result.bad_merges, one_group ? input.n / 2 - 2 : 0);
  }
}

}  // namespace
}  // namespace dynhac
