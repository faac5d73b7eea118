// subgraph_round(): small cases by hand, and whole clusterings in rounds, judged by check().
// Against a plain oracle: tests/test_subgraph.py.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/subgraph/subgraph_round.h"
#include "core/tests/check_input.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Edge {
  int64_t u, v, w;
};

// The columns of half edges.
struct Table {
  std::vector<int64_t> part, other_part, u, v, w, size_u, size_v;
  std::vector<double> least_u;

  void add(int64_t p, int64_t q, int64_t a, int64_t b, int64_t weight, int64_t size_a = 1,
           int64_t size_b = 1, double least_a = kInf) {
    part.push_back(p);
    other_part.push_back(q);
    u.push_back(a);
    v.push_back(b);
    w.push_back(weight);
    size_u.push_back(size_a);
    size_v.push_back(size_b);
    least_u.push_back(least_a);
  }

  HalfEdges view() const { return {part, other_part, u, v, w, size_u, size_v, least_u}; }

  Table permuted(Random& random) const {
    std::vector<size_t> order(u.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    random.shuffle(order);
    Table out;
    for (const size_t i : order) {
      out.add(part[i], other_part[i], u[i], v[i], w[i], size_u[i], size_v[i], least_u[i]);
    }
    return out;
  }
};

// A whole graph of points in one part.
Table whole(const std::vector<Edge>& edges) {
  Table table;
  for (const auto& [u, v, w] : edges) {
    table.add(0, 0, u, v, w);
    table.add(0, 0, v, u, w);
  }
  return table;
}

void expect_same(const RoundResult& x, const RoundResult& y) {
  EXPECT(x.vertices.id == y.vertices.id && x.vertices.image == y.vertices.image);
  EXPECT(x.vertices.size == y.vertices.size && x.vertices.least == y.vertices.least);
  EXPECT(x.vertices.finished == y.vertices.finished);
  EXPECT(x.merges.a == y.merges.a && x.merges.b == y.merges.b && x.merges.w == y.merges.w);
  EXPECT(x.merges.similarity == y.merges.similarity && x.merges.seq == y.merges.seq);
  EXPECT(x.edges.u == y.edges.u && x.edges.v == y.edges.v && x.edges.w == y.edges.w);
  EXPECT(x.edges.part == y.edges.part && x.edges.other_part == y.edges.other_part);
}

std::string message_of(const Table& table, double epsilon = 0, double heavy = 0) {
  try {
    subgraph_round(table.view(), epsilon, heavy);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(subgraph_of_nothing) {
  const RoundResult r = subgraph_round({}, 0.1, 1);
  EXPECT_EQ(r.vertices.id.size(), 0);
  EXPECT_EQ(r.merges.a.size(), 0);
  EXPECT_EQ(r.edges.u.size(), 0);
}

TEST(subgraph_path) {
  // {1, 2} at 10, {3, 4} at 9, both at 8 / 4.
  const Table path = whole({{1, 2, 10}, {2, 3, 8}, {3, 4, 9}});
  const RoundResult all = subgraph_round(path.view(), 0, 0);
  EXPECT_EQ(all.merges.a, Vec<int64_t>({1, 3, 1}));
  EXPECT_EQ(all.merges.b, Vec<int64_t>({2, 4, 3}));
  EXPECT_EQ(all.merges.similarity, Vec<double>({10, 9, 2}));
  EXPECT_EQ(all.merges.seq, Vec<int64_t>({0, 1, 2}));
  EXPECT_EQ(all.vertices.image, Vec<int64_t>({1, 1, 1, 1}));
  EXPECT_EQ(all.vertices.finished, Vec<uint8_t>({1, 1, 1, 1}));
  // An edge below `heavy` stays, but both ends are finished.
  const RoundResult heavy = subgraph_round(path.view(), 0, 2.5);
  EXPECT_EQ(heavy.merges.similarity, Vec<double>({10, 9}));
  EXPECT_EQ(heavy.vertices.image, Vec<int64_t>({1, 1, 3, 3}));
  EXPECT_EQ(heavy.vertices.least, Vec<double>({10, 10, 9, 9}));
  EXPECT_EQ(heavy.edges.u.size(), 0);
  // With much slack 2 and 3 may be merged too, but the heavier ones come first.
  EXPECT_EQ(subgraph_round(path.view(), 1, 2.5).merges.similarity, Vec<double>({10, 9}));
}

TEST(subgraph_counts_edges_to_other_parts) {
  Table table;
  table.add(0, 0, 1, 2, 10);
  table.add(0, 0, 2, 1, 10);
  table.add(0, 7, 2, 3, 15);
  EXPECT_EQ(subgraph_round(table.view(), 0.4, 0).merges.a.size(), 0);
  const RoundResult merged = subgraph_round(table.view(), 0.5, 0);
  EXPECT_EQ(merged.merges.a, Vec<int64_t>({1}));
  EXPECT_EQ(merged.edges.u, Vec<int64_t>({1}));
  EXPECT_EQ(merged.edges.v, Vec<int64_t>({3}));
  EXPECT_EQ(merged.edges.other_part, Vec<int64_t>({7}));
  EXPECT_EQ(merged.edges.w, Vec<int64_t>({15}));
}

TEST(subgraph_wakes_who_waits) {
  // 2 waits for 1, which is heavier with 0. When {0, 1} has been made, 2 is lighter with it than
  // with 3.
  const RoundResult r = subgraph_round(whole({{0, 1, 100}, {1, 2, 50}, {2, 3, 30}}).view(), 0, 0);
  EXPECT_EQ(r.merges.a, Vec<int64_t>({0, 2, 0}));
  EXPECT_EQ(r.merges.b, Vec<int64_t>({1, 3, 2}));
  EXPECT_EQ(r.merges.similarity, Vec<double>({100, 30, 12.5}));
}

TEST(subgraph_rejects) {
  Table table = whole({{1, 2, 10}});
  table.w[1] = 11;
  EXPECT_EQ(message_of(table),
            "row 0: w of the edge (1, 2) is 10; it is 11 in the row of its other half");
  table.w[1] = 0;
  EXPECT_EQ(message_of(table), "row 1: w is 0; it must be in 1..2^53");
  table = whole({{1, 2, 10}});
  table.size_v.pop_back();
  EXPECT_EQ(message_of(table), "the column size_v has 1 rows; u has 2");
  table = whole({{1, 2, 10}});
  EXPECT_EQ(message_of(table, -1), "epsilon is -1.000000; it must be finite and >= 0");
  EXPECT_EQ(message_of(table, 0, kInf), "heavy is inf; it must be finite and >= 0");
}

// Clusters a graph over the points 0..n-1 in rounds with random parts, and checks the merges.
void expect_good_rounds(int64_t n, const std::vector<Edge>& graph, double epsilon, double heavy,
                        Random& random) {
  std::vector<int64_t> size(static_cast<size_t>(n), 1);
  std::vector<double> least(static_cast<size_t>(n), kInf);
  std::vector<int64_t> node(static_cast<size_t>(n));  // of the cluster with a name
  CheckInput input(n);
  input.epsilon = epsilon;
  input.threshold = heavy * (1 + epsilon);
  for (int64_t v = 0; v < n; ++v) node[static_cast<size_t>(v)] = v;
  for (const auto& [u, v, w] : graph) input.edge(u, v, w);

  std::vector<Edge> edges = graph;
  for (int32_t round = 0; !edges.empty(); ++round) {
    const int64_t parts = round < 4 ? 1 + random.below(4) : 1;
    std::vector<int64_t> part(static_cast<size_t>(n));
    for (int64_t& p : part) p = random.below(parts);
    const auto at = [](auto& values, int64_t v) -> auto& { return values[static_cast<size_t>(v)]; };
    Table table;
    for (const auto& [u, v, w] : edges) {
      table.add(at(part, u), at(part, v), u, v, w, at(size, u), at(size, v), at(least, u));
      table.add(at(part, v), at(part, u), v, u, w, at(size, v), at(size, u), at(least, v));
    }
    const RoundResult r = subgraph_round(table.view(), epsilon, heavy);
    expect_same(r, subgraph_round(table.permuted(random).view(), epsilon, heavy));

    std::vector<size_t> order(r.merges.a.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t i, size_t j) { return r.merges.seq[i] < r.merges.seq[j]; });
    for (const size_t i : order) {
      const int64_t a = r.merges.a[i], b = r.merges.b[i];
      const int32_t step = round * 10'000 + static_cast<int32_t>(r.merges.seq[i]);
      input.merge(at(node, a), at(node, b), r.merges.similarity[i], step);
      at(node, a) = input.last_node();
    }
    std::vector<int64_t> image(static_cast<size_t>(n));
    std::vector<uint8_t> finished(static_cast<size_t>(n));
    for (size_t i = 0; i < r.vertices.id.size(); ++i) {
      const int64_t z = r.vertices.image[i];
      at(image, r.vertices.id[i]) = z;
      at(size, z) = r.vertices.size[i];
      at(least, z) = r.vertices.least[i];
      at(finished, z) = r.vertices.finished[i];
    }
    std::map<std::pair<int64_t, int64_t>, int64_t> sums;
    for (size_t i = 0; i < r.edges.u.size(); ++i) {
      const int64_t u = r.edges.u[i], v = at(image, r.edges.v[i]);
      if (!at(finished, v)) sums[std::minmax(u, v)] += r.edges.w[i];
    }
    edges.clear();
    for (const auto& [pair, w] : sums) edges.push_back({pair.first, pair.second, w});
    EXPECT(parts > 1 || edges.empty());
  }
  const CheckResult result = input.run();
  EXPECT_EQ(result.bad_merges, 0);
  EXPECT_EQ(result.wrong_similarities, 0);
  EXPECT_EQ(result.heavy_edges_left, 0);
}

TEST(subgraph_rounds_are_good) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(testing::state().base_seed + seed);
    const int64_t n = 2 + random.below(150);
    const int64_t largest = std::vector<int64_t>{1, 3, 1'000'000'000'000}[seed % 3];
    const double epsilon = std::vector<double>{0, 0.1, 1}[seed / 3 % 3];
    const bool hub = random.chance(0.3);
    std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
    for (int64_t i = 0; i < 4 * n; ++i) {
      const int64_t a = hub && random.chance(0.5) ? 0 : random.below(n), b = random.below(n);
      if (a != b) pairs[std::minmax(a, b)] = 1 + random.below(largest);
    }
    std::vector<Edge> edges;
    for (const auto& [pair, w] : pairs) edges.push_back({pair.first, pair.second, w});
    expect_good_rounds(n, edges, epsilon, random.chance(0.5) ? 0 : 0.7, random);
  }
}

// Ends a computation after about `millions` of steps.
class Allowance : public Poll {
 public:
  explicit Allowance(int millions) : left_(millions) {}
  void check() override {
    if (--left_ < 0) throw std::runtime_error("too many steps");
  }

 private:
  int left_;
};

TEST(subgraph_hubs_are_not_quadratic) {
  // The leaves also form a path, so that they have another edge to wait for.
  constexpr int64_t kLeaves = 20'000;
  for (const double epsilon : {0.0, 0.1, 1.0}) {
    Random random(1);
    std::vector<Edge> edges;
    for (int64_t v = 1; v <= kLeaves; ++v) {
      edges.push_back({0, v, 1'000'000 + random.below(1'000'000)});
      if (v > 1) edges.push_back({v - 1, v, 1 + random.below(1'000'000)});
    }
    Allowance steps(5);
    const RoundResult r = subgraph_round(whole(edges).view(), epsilon, 0, &steps);
    EXPECT_EQ(r.merges.a.size(), kLeaves);
  }
}

TEST(subgraph_without_memory) {
  std::vector<Edge> edges;
  Random random(3);
  for (int64_t u = 0; u < 12; ++u) {
    for (int64_t v = 0; v < u; ++v) edges.push_back({u, v, 1 + random.below(50)});
  }
  const Table table = whole(edges);
  const RoundResult expected = subgraph_round(table.view(), 0.1, 0);
  int64_t failed = 0;
  for (;; ++failed) {
    fail_allocation(failed);
    try {
      const RoundResult r = subgraph_round(table.view(), 0.1, 0);
      fail_allocation(-1);
      expect_same(r, expected);
      break;
    } catch (const std::bad_alloc&) {
    }
  }
  EXPECT(failed > 30);
}

}  // namespace
}  // namespace dynhac
