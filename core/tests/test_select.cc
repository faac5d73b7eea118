// The automatic choice of clusters against its definition, read from the top of the tree down: all
// ways to choose branches are tried. Also conductances, noise, extreme numbers and bad input.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "core/selection/branch.h"
#include "core/selection/select.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using Labels = std::vector<int64_t>;

struct Forest {
  int64_t n = 0;
  std::vector<int64_t> children;
  std::vector<double> similarity;

  size_t merges() const { return similarity.size(); }
  std::vector<double> least() const {
    std::vector<double> least = similarity;
    for (size_t i = 0; i < children.size(); ++i) {
      if (children[i] < n) continue;
      least[i / 2] = std::min(least[i / 2], least[static_cast<size_t>(children[i] - n)]);
    }
    return least;
  }
};

Labels chosen(const Forest& f, int64_t min_size) {
  Labels labels(static_cast<size_t>(f.n), -7);
  select_clusters(f.n, f.children, f.similarity, f.least(), min_size, labels);
  return labels;
}

Labels nearest(const Forest& f, Labels labels) {
  give_nearest(f.n, f.children, labels);
  return labels;
}

Forest random_forest(Random& random, int64_t most) {
  Forest f;
  f.n = 1 + random.below(most);
  std::vector<int64_t> roots(static_cast<size_t>(f.n));
  std::iota(roots.begin(), roots.end(), 0);
  const int64_t values = random.chance(0.5) ? 4 : 1000;
  const int64_t left = random.chance(0.5) ? 1 : 1 + random.below(f.n);
  while (static_cast<int64_t>(roots.size()) > left) {
    random.shuffle(roots);
    const int64_t a = roots.back();
    roots.pop_back();
    f.children.insert(f.children.end(), {a, roots.back()});
    roots.back() = f.n + static_cast<int64_t>(f.similarity.size());
    f.similarity.push_back(static_cast<double>(1 + random.below(values)));
  }
  return f;
}

// The definition, by recursion.
class Literal {
 public:
  Literal(const Forest& forest, int64_t min_size)
      : f_(forest), least_(forest.least()), min_size_(min_size) {
    for (size_t j = 0; j < f_.merges(); ++j) is_child_.insert({f_.children[2 * j], right(j)});
    for (int64_t node = f_.n + static_cast<int64_t>(f_.merges()); node-- > 0;) {
      if (!is_child_.contains(node)) roots_.push_back(node);
    }
  }

  std::set<int64_t> leaves(int64_t node) const {
    if (node < f_.n) return {node};
    std::set<int64_t> all = leaves(left(merge(node)));
    all.merge(leaves(right(merge(node))));
    return all;
  }
  double weight(int64_t node) const {
    if (node < f_.n) return 0;
    const size_t j = merge(node);
    return weight(left(j)) + weight(right(j)) + crossing(j);
  }
  double crossing(size_t j) const {
    return f_.similarity[j] * static_cast<double>(size(left(j)) * size(right(j)));
  }
  double conductance(size_t j) const {
    const double inside = std::min(weight(left(j)), weight(right(j)));
    return crossing(j) / (2 * inside + crossing(j));
  }
  double level(size_t j) const { return 0.5 * std::log(least_[j] * conductance(j)); }

  // The nodes of a branch, and its excess, leaf by leaf.
  std::vector<int64_t> path(int64_t top) const {
    std::vector<int64_t> nodes;
    for (int64_t node = top; size(node) >= min_size_;) {
      nodes.push_back(node);
      const int64_t a = left(merge(node)), b = right(merge(node));
      if (size(a) >= min_size_ && size(b) >= min_size_) break;
      node = size(a) >= size(b) ? a : b;
    }
    return nodes;
  }
  bool has_split(int64_t top) const {
    return std::min(size(left(end(top))), size(right(end(top)))) >= min_size_;
  }
  double excess(int64_t top, double birth) const {
    double sum = 0;
    for (const int64_t leaf : leaves(top)) {
      double leaves_at = 0;
      for (const int64_t node : path(top)) {
        if (leaves(node).contains(leaf)) leaves_at = level(merge(node));
      }
      sum += leaves_at - birth;
    }
    return std::max(sum, 0.0);
  }

  // What the rule chooses below a top, and the sum of the excesses. `unsure` is set if rounding
  // could decide.
  struct Choice {
    std::set<int64_t> tops;
    double excess;
  };
  Choice below(int64_t top, bool* unsure) const {
    const size_t split = end(top);
    Choice both = choice(left(split), level(split), unsure);
    const Choice other = choice(right(split), level(split), unsure);
    both.tops.insert(other.tops.begin(), other.tops.end());
    both.excess += other.excess;
    return both;
  }
  Choice choice(int64_t top, double birth, bool* unsure) const {
    const Choice whole = {{top}, excess(top, birth)};
    if (!has_split(top)) return whole;
    const Choice parts = below(top, unsure);
    *unsure |= std::abs(whole.excess - 1.25 * parts.excess) < 1e-9;
    return whole.excess >= 1.25 * parts.excess ? whole : parts;
  }

  // The clusters; false if rounding could decide.
  bool best(std::set<int64_t>* tops) const {
    bool unsure = false;
    for (const int64_t root : roots_) {
      if (size(root) < min_size_) continue;
      Choice chosen = {{root}, 0};
      if (has_split(root)) {
        const Choice parts = below(root, &unsure);
        const double contrast = parts.excess / static_cast<double>(size(root));
        const double most = 4 * size(root) > 3 * f_.n ? 0.5 : 1.4;
        unsure |= std::abs(contrast - most) < 1e-9;
        if (contrast > most) chosen = parts;
      }
      tops->insert(chosen.tops.begin(), chosen.tops.end());
    }
    return !unsure;
  }

  int64_t left(size_t j) const { return f_.children[2 * j]; }
  int64_t right(size_t j) const { return f_.children[2 * j + 1]; }
  size_t merge(int64_t node) const { return static_cast<size_t>(node - f_.n); }
  int64_t size(int64_t node) const {
    return node < f_.n ? 1 : size(left(merge(node))) + size(right(merge(node)));
  }
  size_t end(int64_t top) const { return merge(path(top).back()); }

 private:
  const Forest& f_;
  std::vector<double> least_;
  int64_t min_size_;
  std::set<int64_t> is_child_;
  std::vector<int64_t> roots_;
};

Labels labelled(const Forest& f, const Literal& literal, const std::set<int64_t>& tops) {
  Labels labels(static_cast<size_t>(f.n), -1);
  for (const int64_t top : tops) {
    for (const int64_t leaf : literal.leaves(top)) labels[static_cast<size_t>(leaf)] = top;
  }
  Labels known;
  for (int64_t& label : labels) {
    if (label < 0) continue;
    const auto place = std::find(known.begin(), known.end(), label);
    const int64_t number = place - known.begin();
    if (place == known.end()) known.push_back(label);
    label = number;
  }
  return labels;
}

TEST(select_follows_the_definition) {
  int64_t decided = 0;
  for (uint64_t round = 0; round < 1500; ++round) {
    Random random(testing::base_seed() + round);
    const Forest f = random_forest(random, 16);
    const int64_t min_size = 2 + random.below(3);
    const Literal literal(f, min_size);
    const CondensedTree tree = condense(f.n, f.children, f.similarity, f.least(), min_size);
    std::set<int64_t> kept;
    for (size_t i = 0; i < tree.top.size(); ++i) {
      const int64_t top = tree.top[i];
      if (tree.kept[i]) kept.insert(top);
      EXPECT_EQ(tree.size[i], literal.size(top));
      EXPECT(std::abs(tree.excess[i] - literal.excess(top, tree.birth[i])) < 1e-9);
      EXPECT_EQ(tree.death[i], tree.level[literal.end(top)]);
      if (tree.parent[i] < 0) continue;
      const size_t above = static_cast<size_t>(tree.parent[i]);
      EXPECT(above < i);
      const size_t split = literal.end(tree.top[above]);
      EXPECT(literal.left(split) == top || literal.right(split) == top);
      EXPECT_EQ(tree.birth[i], tree.level[split]);
    }
    for (size_t j = 0; j < f.merges(); ++j) {
      EXPECT(std::abs(tree.level[j] - literal.level(j)) < 1e-9);
    }
    const Labels labels = chosen(f, min_size);
    EXPECT_EQ(labels, labelled(f, literal, kept));
    std::set<int64_t> best;
    if (!literal.best(&best)) continue;
    ++decided;
    EXPECT_EQ(kept, best);
  }
  EXPECT(decided > 1000);
}

TEST(select_by_hand) {
  // Four pairs, in two groups of two.
  const Forest f{
      8, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, {1, 1, 1, 1, 0.25, 0.25, 0.0625}};
  const CondensedTree tree = condense(8, f.children, f.similarity, f.least(), 2);
  EXPECT_EQ(tree.top.size(), size_t{7});
  EXPECT_EQ(chosen(f, 2), (Labels{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(chosen(f, 3), (Labels{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(chosen(f, 5), Labels(8, 0));
  EXPECT_EQ(chosen(f, 9), Labels(8, -1));
  EXPECT_EQ(chosen(f, std::numeric_limits<int64_t>::max()), Labels(8, -1));
}

TEST(select_decides_about_roots_by_contrast_and_size) {
  // Two pairs have 0.69 per leaf: enough for a tree that is nearly alone only.
  const double apart = 0.5;
  EXPECT_EQ(chosen({4, {0, 1, 2, 3, 4, 5}, {1, 1, apart}}, 2), (Labels{0, 0, 1, 1}));
  EXPECT_EQ(chosen({5, {0, 1, 2, 3, 5, 6}, {1, 1, apart}}, 2), (Labels{0, 0, 1, 1, -1}));
  EXPECT_EQ(chosen({6, {0, 1, 2, 3, 6, 7}, {1, 1, apart}}, 2), (Labels{0, 0, 0, 0, -1, -1}));
  EXPECT_EQ(chosen({6, {0, 1, 2, 3, 6, 7}, {1, 1, apart / 16}}, 2), (Labels{0, 0, 1, 1, -1, -1}));
  // Near each other they are one cluster in any case.
  EXPECT_EQ(chosen({4, {0, 1, 2, 3, 4, 5}, {1, 1, 0.9}}, 2), (Labels(4, 0)));
}

TEST(select_of_no_merges) {
  EXPECT_EQ(chosen({0, {}, {}}, 2), Labels{});
  EXPECT_EQ(chosen({1, {}, {}}, 2), Labels{-1});
  EXPECT_EQ(chosen({3, {}, {}}, 2), (Labels{-1, -1, -1}));
  EXPECT_EQ(condense(3, {}, {}, {}, 2).top.size(), size_t{0});
  EXPECT_EQ(least_conductances(3, {}, {}).size(), size_t{0});
  EXPECT_EQ(nearest({3, {}, {}}, {-1, 0, -1}), (Labels{-1, 0, -1}));
  EXPECT_EQ(nearest({0, {}, {}}, {}), Labels{});
}

TEST(conductances_by_hand) {
  // Two pairs of weight 1 with 4 * 0.125 between them, then a single leaf.
  const Forest f{5, {0, 1, 2, 3, 5, 6, 7, 4}, {1, 1, 0.125, 0.5}};
  const Vec<double> least = least_conductances(5, f.children, f.similarity);
  EXPECT_EQ(std::vector<double>(least.begin(), least.end()), (std::vector<double>{1, 1, 0.2, 0.2}));
  for (uint64_t round = 0; round < 200; ++round) {
    Random random(testing::base_seed() + round);
    const Forest g = random_forest(random, 12);
    const Literal literal(g, 2);
    Forest own = g;
    for (size_t j = 0; j < g.merges(); ++j) own.similarity[j] = literal.conductance(j);
    const std::vector<double> expected = own.least();
    const Vec<double> found = least_conductances(g.n, g.children, g.similarity);
    for (size_t j = 0; j < g.merges(); ++j) EXPECT(std::abs(found[j] - expected[j]) < 1e-12);
  }
}

TEST(noise_goes_to_the_nearest_cluster) {
  for (uint64_t round = 0; round < 300; ++round) {
    Random random(testing::base_seed() + round);
    const Forest f = random_forest(random, 20);
    const Literal literal(f, 2);
    Labels labels;
    for (int64_t i = 0; i < f.n; ++i) {
      labels.push_back(random.below(std::min<int64_t>(f.n, 5) + 1) - 1);
      if (random.chance(0.6)) labels.back() = -1;
    }
    Labels expected = labels;
    for (size_t leaf = 0; leaf < labels.size(); ++leaf) {
      // Ancestors have larger numbers further up.
      for (size_t j = 0; j < f.merges() && expected[leaf] < 0; ++j) {
        const std::set<int64_t> under = literal.leaves(f.n + static_cast<int64_t>(j));
        if (!under.contains(static_cast<int64_t>(leaf))) continue;
        int64_t most = 0;
        for (int64_t label = 0; label < f.n; ++label) {
          const auto has = [&](int64_t x) { return labels[static_cast<size_t>(x)] == label; };
          const int64_t count = std::count(labels.begin(), labels.end(), label);
          if (count > most && std::any_of(under.begin(), under.end(), has)) {
            most = count;
            expected[leaf] = label;
          }
        }
      }
    }
    EXPECT_EQ(nearest(f, labels), expected);
  }
}

TEST(select_of_extreme_similarities) {
  const double largest = std::numeric_limits<double>::max();
  const double tiniest = std::numeric_limits<double>::denorm_min();
  for (uint64_t round = 0; round < 300; ++round) {
    Random random(testing::base_seed() + round);
    Forest f = random_forest(random, 60);
    const std::vector<double> values = {largest, 1e300, 1.0, 1e-300, tiniest};
    for (double& similarity : f.similarity) similarity = random.pick(values);
    const CondensedTree tree = condense(f.n, f.children, f.similarity, f.least(), 2);
    for (const double x : tree.level) EXPECT(std::isfinite(x));
    for (const double x : tree.excess) EXPECT(std::isfinite(x) && x >= 0);
    for (const double x : least_conductances(f.n, f.children, f.similarity)) {
      EXPECT(x > 0 && x <= 1);
    }
    const Labels labels = chosen(f, 2);
    for (size_t i = 0; i < tree.top.size(); ++i) {
      if (tree.parent[i] < 0 && tree.size[i] == 2) EXPECT(tree.kept[i]);
    }
    EXPECT_EQ(std::count(tree.kept.begin(), tree.kept.end(), 1),
              *std::max_element(labels.begin(), labels.end()) + 1);
  }
}

TEST(conductances_do_not_depend_on_the_scale) {
  for (uint64_t round = 0; round < 100; ++round) {
    Random random(testing::base_seed() + round);
    Forest f = random_forest(random, 60);
    const Vec<double> least = least_conductances(f.n, f.children, f.similarity);
    for (double& similarity : f.similarity) similarity *= 0x1p-40;
    EXPECT_EQ(least_conductances(f.n, f.children, f.similarity), least);
  }
}

TEST(select_is_symmetric_in_children) {
  for (uint64_t round = 0; round < 200; ++round) {
    Random random(testing::base_seed() + round);
    Forest f = random_forest(random, 80);
    const Labels labels = chosen(f, 3);
    const Vec<double> excess = condense(f.n, f.children, f.similarity, f.least(), 3).excess;
    for (size_t j = 0; j < f.merges(); ++j) {
      if (random.chance(0.5)) std::swap(f.children[2 * j], f.children[2 * j + 1]);
    }
    EXPECT_EQ(chosen(f, 3), labels);
    EXPECT_EQ(condense(f.n, f.children, f.similarity, f.least(), 3).excess, excess);
  }
}

TEST(select_deep_dendrogram) {
  const int64_t n = 300'000;
  Forest f{n, {0, 1}, {1}};
  for (int64_t i = 2; i < n; ++i) {
    f.children.insert(f.children.end(), {i, n + i - 2});
    f.similarity.push_back(1.0 / static_cast<double>(i));
  }
  EXPECT_EQ(chosen(f, 25), Labels(static_cast<size_t>(n), 0));
  Labels labels(static_cast<size_t>(n), -1);
  labels[1] = 3;
  EXPECT_EQ(nearest(f, labels), Labels(static_cast<size_t>(n), 3));
}

TEST(select_rejects_malformed_input) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  Labels two(2), three(3);
  const std::vector<int64_t> pair = {0, 1};
  const std::vector<double> half = {0.5};
  for (const double wrong : {nan, infinity, 0.0, -1.0}) {
    const std::vector<double> given = {wrong};
    EXPECT_THROWS(std::invalid_argument, select_clusters(2, pair, given, half, 2, two));
    EXPECT_THROWS(std::invalid_argument, select_clusters(2, pair, half, given, 2, two));
    EXPECT_THROWS(std::invalid_argument, least_conductances(2, pair, given));
  }
  EXPECT_THROWS(std::invalid_argument, select_clusters(2, pair, half, half, 1, two));
  EXPECT_THROWS(std::invalid_argument, select_clusters(2, pair, half, half, -5, two));
  EXPECT_THROWS(std::invalid_argument, select_clusters(2, pair, half, half, 2, three));
  EXPECT_THROWS(std::invalid_argument, select_clusters(2, pair, {}, half, 2, two));
  EXPECT_THROWS(std::invalid_argument, select_clusters(2, pair, half, {}, 2, two));
  EXPECT_THROWS(std::invalid_argument, select_clusters(-1, {}, {}, {}, 2, {}));
  EXPECT_THROWS(std::invalid_argument, least_conductances(INT64_MAX, {}, {}));
  EXPECT_THROWS(std::invalid_argument, condense(2, std::vector<int64_t>{0, 2}, half, half, 2));
  EXPECT_THROWS(std::invalid_argument, nearest({2, pair, half}, {0, 2}));
  EXPECT_THROWS(std::invalid_argument, nearest({2, pair, half}, {0, -2}));
  EXPECT_THROWS(std::invalid_argument, nearest({2, pair, half}, {0}));
}

}  // namespace
}  // namespace dynhac
