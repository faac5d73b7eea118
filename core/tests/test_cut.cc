// cut() on a dendrogram cut by hand, against a union-find over the merges, and on bad input.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/check/cut.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using Labels = std::vector<int64_t>;

Labels run(int64_t n, const std::vector<int64_t>& children, const std::vector<double>& similarity,
           const std::vector<double>& thresholds) {
  Labels labels(static_cast<size_t>(n) * thresholds.size(), -7);
  cut(n, children, similarity, thresholds, labels);
  return labels;
}

TEST(cut_by_hand) {
  //        8: 0.5
  //       /      |
  //   7: 0.75    |
  //   /     |    |
  //  6: 0.9 |  5: 0.8
  //  | |    |   | |
  //  1 3    4   0 2
  const std::vector<int64_t> children = {0, 2, 3, 1, 6, 4, 7, 5};
  const std::vector<double> similarity = {0.8, 0.9, 0.75, 0.5};
  EXPECT_EQ(run(5, children, similarity, {0.95}), (Labels{0, 1, 2, 3, 4}));
  EXPECT_EQ(run(5, children, similarity, {0.9}), (Labels{0, 1, 2, 1, 3}));
  EXPECT_EQ(run(5, children, similarity, {0.8}), (Labels{0, 1, 0, 1, 2}));
  EXPECT_EQ(run(5, children, similarity, {0.75}), (Labels{0, 1, 0, 1, 1}));
  EXPECT_EQ(run(5, children, similarity, {0.5, 0.9}), (Labels{0, 0, 0, 0, 0, 0, 1, 2, 1, 3}));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(run(5, children, similarity, {-infinity}), (Labels{0, 0, 0, 0, 0}));
  EXPECT_EQ(run(5, children, similarity, {infinity}), (Labels{0, 1, 2, 3, 4}));
}

TEST(cut_of_no_merges) {
  EXPECT_EQ(run(0, {}, {}, {}), Labels{});
  EXPECT_EQ(run(0, {}, {}, {0.5, 0.1}), Labels{});
  EXPECT_EQ(run(2, {0, 1}, {0.5}, {}), Labels{});
  EXPECT_EQ(run(3, {}, {}, {0.0}), (Labels{0, 1, 2}));
}

TEST(cut_follows_union_find) {
  for (uint64_t round = 0; round < 300; ++round) {
    Random random(testing::base_seed() + round);
    const int64_t n = 1 + random.below(40);
    std::vector<int64_t> roots(static_cast<size_t>(n)), children;
    std::iota(roots.begin(), roots.end(), 0);
    std::vector<double> lowest(roots.size(), 5.0), similarity;  // lowest: by node
    for (int64_t merges = random.below(n); merges > 0; --merges) {
      random.shuffle(roots);
      const int64_t a = roots.back();
      roots.pop_back();
      const int64_t b = roots.back();
      roots.back() = static_cast<int64_t>(lowest.size());
      children.insert(children.end(), {a, b});
      const double own =
          static_cast<double>(1 + random.below(5));  // few values: ties with thresholds
      lowest.push_back(
          std::min({own, lowest[static_cast<size_t>(a)], lowest[static_cast<size_t>(b)]}));
      similarity.push_back(lowest.back());
    }
    const std::vector<double> thresholds = {3, 0, 5, 2.5, 1, 6};
    const Labels labels = run(n, children, similarity, thresholds);

    for (size_t row = 0; row < thresholds.size(); ++row) {
      std::vector<size_t> up(lowest.size());
      std::iota(up.begin(), up.end(), size_t{0});
      const auto find = [&up](size_t x) {
        while (up[x] != x) x = up[x];
        return x;
      };
      for (size_t j = 0; j < similarity.size(); ++j) {
        if (similarity[j] < thresholds[row]) continue;
        for (const size_t k : {2 * j, 2 * j + 1}) {
          up[find(static_cast<size_t>(children[k]))] = static_cast<size_t>(n) + j;
        }
      }
      Labels expected;
      std::vector<size_t> known;
      for (size_t x = 0; x < static_cast<size_t>(n); ++x) {
        const auto place = std::find(known.begin(), known.end(), find(x));
        expected.push_back(place - known.begin());
        if (place == known.end()) known.push_back(find(x));
      }
      const auto begin = labels.begin() + static_cast<std::ptrdiff_t>(row) * n;
      EXPECT_EQ(Labels(begin, begin + n), expected);
    }
  }
}

TEST(cut_deep_dendrogram) {
  // A chain of maximal depth: cut() must not recurse.
  const int64_t n = 300'000;
  std::vector<int64_t> children = {0, 1};
  std::vector<double> similarity = {1};
  for (int64_t i = 2; i < n; ++i) {
    children.insert(children.end(), {i, n + i - 2});
    similarity.push_back(1.0 / static_cast<double>(i));
  }
  const Labels labels = run(n, children, similarity, {0, 0.5});
  EXPECT_EQ(labels[static_cast<size_t>(n) - 1], 0);
  EXPECT_EQ(labels[static_cast<size_t>(n) + 2], 0);
  EXPECT_EQ(labels[static_cast<size_t>(2 * n) - 1], n - 3);
}

TEST(cut_rejects_malformed_input) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROWS(std::invalid_argument, cut(-1, {}, {}, {}, {}));
  EXPECT_THROWS(std::invalid_argument, run(2, {0}, {0.5}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(2, {0, 2}, {0.5}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(2, {0, -1}, {0.5}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(2, {0, 0}, {0.5}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(3, {0, 1, 0, 2}, {0.5, 0.4}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(2, {0, 1}, {0.5, 0.5}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(2, {0, 1}, {nan}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(2, {0, 1}, {0.5}, {nan}));
  EXPECT_THROWS(std::invalid_argument, run(3, {0, 1, 3, 2}, {0.5, 0.6}, {0.1}));
  EXPECT_THROWS(std::invalid_argument, run(0, {0, 1}, {0.5}, {0.1}));
  Labels labels(3);
  const std::vector<int64_t> children = {0, 1};
  const std::vector<double> similarity = {0.5}, thresholds = {0.1};
  EXPECT_THROWS(std::invalid_argument, cut(2, children, similarity, thresholds, labels));
}

}  // namespace
}  // namespace dynhac
