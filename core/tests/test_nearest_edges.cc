// Edges out of found rows, against a set of all pairs seen so far.

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "core/hierarchy/types.h"
#include "core/points/nearest_edges.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using Edge = std::tuple<int64_t, int64_t, double>;

std::vector<Edge> plain(const FoundRows& rows, size_t most) {
  std::set<std::pair<int64_t, int64_t>> seen;
  std::vector<Edge> edges;
  for (size_t row = 0; row < rows.own.size(); ++row) {
    const int64_t u = rows.own[row];
    size_t others = 0;
    for (size_t i = row * rows.width; i < (row + 1) * rows.width; ++i) {
      const int64_t v = rows.found[i];
      if (v < 0 || v == u || others++ >= most) continue;
      if (seen.insert(std::minmax(u, v)).second) edges.emplace_back(u, v, rows.distances[i]);
    }
  }
  return edges;
}

std::vector<Edge> listed(const NearestEdges& edges) {
  std::vector<Edge> list;
  for (size_t i = 0; i < edges.u.size(); ++i) {
    list.emplace_back(edges.u[i], edges.v[i], edges.distances[i]);
  }
  EXPECT(edges.v.size() == edges.u.size() && edges.distances.size() == edges.u.size());
  return list;
}

TEST(nearest_edges_of_random_rows) {
  for (int round = 0; round < 400; ++round) {
    Random random(testing::base_seed() + static_cast<uint64_t>(round));
    const int64_t points = 1 + random.below(40);
    // Slots next to each other, or few among many.
    const int64_t step = random.chance(0.5) ? 1 : 1 + random.below(1'000'000);
    std::vector<int64_t> own;
    for (int64_t i = 0; i < points; ++i) {
      if (random.chance(0.6)) own.push_back(i * step);
    }
    random.shuffle(own);
    const auto width = static_cast<size_t>(random.below(12));
    std::vector<int64_t> found(own.size() * width);
    std::vector<double> distances(found.size());
    for (size_t row = 0; row < own.size(); ++row) {
      std::vector<int64_t> all(static_cast<size_t>(points));
      for (int64_t i = 0; i < points; ++i) all[static_cast<size_t>(i)] = i * step;
      random.shuffle(all);
      for (size_t j = 0; j < width; ++j) {
        found[row * width + j] = j < all.size() && random.chance(0.9) ? all[j] : -1;
        distances[row * width + j] = random.uniform();
      }
    }
    const FoundRows rows = {own, found, distances, width};
    const auto most = static_cast<size_t>(random.below(13));
    EXPECT_EQ(listed(nearest_edges(rows, most)), plain(rows, most));
  }
}

TEST(nearest_edges_rejects) {
  const std::vector<int64_t> own{3, 4}, negative{3, -1}, found{4, 3};
  const std::vector<double> distances{1, 1};
  EXPECT_EQ(nearest_edges({own, found, distances, 1}, 1).u.size(), 1);
  EXPECT_THROWS(std::invalid_argument, nearest_edges({own, found, distances, 2}, 1));
  EXPECT_THROWS(std::invalid_argument,
                nearest_edges({own, found, std::span(distances).first(1), 1}, 1));
  EXPECT_THROWS(std::invalid_argument, nearest_edges({negative, found, distances, 1}, 1));
}

TEST(nearest_edges_of_joined_rows) {
  const std::vector<int64_t> own = {1, 2}, found = {2, 5, 6, -1}, other = {9}, more = {1, 2, 3};
  const std::vector<double> distances = {1, 2, 3, 4}, far = {5, 6, 7};
  const FoundRows first{own, found, distances, 2}, second{other, more, far, 3};
  const JoinedRows both(first, second);
  EXPECT_EQ(both.width, 3);
  EXPECT_EQ(both.own, (Vec<int64_t>{1, 2, 9}));
  EXPECT_EQ(both.found, (Vec<int64_t>{2, 5, -1, 6, -1, -1, 1, 2, 3}));
  EXPECT_EQ(both.distances, (Vec<double>{1, 2, kInfinity, 3, 4, kInfinity, 5, 6, 7}));
  EXPECT_EQ(JoinedRows(second, first).found, (Vec<int64_t>{1, 2, 3, 2, 5, -1, 6, -1, -1}));
  EXPECT_EQ(listed(nearest_edges(both.view(), 3)).size(), 6);
}

TEST(weighted_edges_of_every_rule) {
  const double far = kInfinity;
  using Kind = SimilarityRule::Kind;
  const auto weigh = [](Kind kind, double sigma, std::vector<double> distances) {
    NearestEdges edges;
    for (Buffer<int64_t>* ends : {&edges.u, &edges.v}) ends->renew(distances.size());
    edges.distances.renew(distances.size());
    for (size_t i = 0; i < distances.size(); ++i) {
      edges.u[i] = static_cast<int64_t>(i);
      edges.v[i] = static_cast<int64_t>(i + 1);
      edges.distances[i] = distances[i];
    }
    return weighted(std::move(edges), SimilarityRule(kind, sigma), 0.125);
  };
  const WeightedEdges inverse = weigh(Kind::kInverse, 1, {1, 7, 8, far, 3});
  EXPECT_EQ(inverse.weights, (Buffer<double>{0.5, 0.125, 0.25}));  // 1/9 and 0 weigh too little
  EXPECT_EQ(inverse.u, (Buffer<int64_t>{0, 1, 4}));
  EXPECT_EQ(inverse.v, (Buffer<int64_t>{1, 2, 5}));
  const WeightedEdges gaussian = weigh(Kind::kGaussian, 2, {0, 2, far});
  EXPECT_EQ(gaussian.weights, (Buffer<double>{1, std::exp(-0.5)}));
  EXPECT_EQ(weigh(Kind::kCosine, 1, {0.5, 1.5, 0}).weights, (Buffer<double>{0.5, 1}));
  EXPECT_EQ(weigh(Kind::kDot, 1, {-3, 3, 0}).weights, (Buffer<double>{3}));
}

TEST(weighted_edges_of_another_similarity) {
  struct Table : Similarity {
    void apply(std::span<double> values, Workers&) const override {
      calls += 1;
      for (double& value : values) value = value == 1 ? std::nan("") : 2 * value;
    }
    mutable int calls = 0;
  } table;
  const WeightedEdges edges = weighted({{1, 2, 3}, {4, 5, 6}, {0.5, 1, 2}}, table, 0);
  EXPECT_EQ(table.calls, 1);
  EXPECT_EQ(edges.u, (Buffer<int64_t>{1, 3}));  // a weight that is not a number is dropped
  EXPECT_EQ(edges.v, (Buffer<int64_t>{4, 6}));
  EXPECT_EQ(edges.weights, (Buffer<double>{1, 4}));
}

}  // namespace
}  // namespace dynhac
