// The replay of a dendrogram on its graph: what check() does once its input is known to be valid.
//
// Nodes are those of the dendrogram. A *vertex* is a node that is present on the current level.
// Every vertex has a flat list of (neighbour, weight): a slice of one big array for leaves, an
// array of its own for a cluster. When vertices merge, the lists that name them are not touched:
// `up` leads from a vertex to the one it has become part of, and a list is brought up to date
// (normalised) only when its owner merges.
//
// The merges of one level are a forest whose leaves are vertices; a tree of it is a *group*. A
// group is decomposed into heavy paths: from every merge on to the child with the larger load
// (list entries and members below). The bottom of a path is a vertex, which grows into a cluster A
// by absorbing one *light* cluster B after the other. Work is done per list entry and member of
// the light B only: for each of them O(log) times, as the load at least doubles whenever a light
// cluster is absorbed. For A itself there is
// - w(A, y) in Node::weight of every neighbour y (valid iff Node::seen is the stamp of the path);
// - Node::inside, which marks the vertices in A;
// - a heap of w(A, y) / S(y). Weights only grow along a path, so that an outdated entry lies
//   below the current one of the same y; and a y in A or B never leaves it again, so that it can
//   be dropped from the top for good. The topmost remaining y has the largest value.
//
// Light clusters are finished paths themselves. Paths are taken in the order of their topmost
// nodes; children have smaller indices than parents, so everything a path absorbs is ready before
// it.

#ifndef DYNHAC_CHECK_REPLAY_H_
#define DYNHAC_CHECK_REPLAY_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/check/check.h"
#include "core/check/forest.h"

namespace dynhac::replay {

// Relative errors that are attributed to rounding.
inline constexpr double kRounding = 0x1p-40;
inline constexpr double kSimilarityRounding = 1e-12;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline double linkage(int64_t weight, uint32_t size_a, uint32_t size_b) {
  return static_cast<double>(weight) / (static_cast<double>(size_a) * static_cast<double>(size_b));
}

struct Graph {
  int64_t n;
  std::span<const int64_t> u, v, w;
};

struct Merges {
  std::span<const int64_t> children;
  std::span<const double> similarity;
  std::span<const int32_t> level;
};

struct Limits {
  double epsilon, threshold, resolution;
};

class Replay {
 public:
  // `parent` as of forest_parents. Throws std::invalid_argument when an edge is given twice;
  // everything else has been checked.
  Replay(const Graph& graph, const Merges& merges, Vec<uint32_t> parent, const Limits& limits,
         Poll* poll)
      : leaves_(static_cast<size_t>(graph.n)),
        merges_(merges),
        parent_(std::move(parent)),
        limits_(limits),
        pace_(poll),
        nodes_(parent_.size()),
        min_merge_(parent_.size(), kInfinity),
        merge_lists_(parent_.size() - leaves_),
        load_(parent_.size()),
        heavy_(parent_.size() - leaves_) {
    for (uint32_t x = 0; x < nodes_.size(); ++x) nodes_[x].up = x;
    build_lists(graph);
  }

  // To be called once.
  CheckResult run() {
    const size_t count = merge_lists_.size();
    Vec<LevelMerge> order;  // within a level, children still before parents
    order.reserve(count);
    for (size_t j = 0; j < count; ++j) {
      order.emplace_back(merges_.level[j], static_cast<uint32_t>(leaves_ + j));
    }
    std::sort(order.begin(), order.end());
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
      while (end < count && order[end].first == order[begin].first) ++end;
      replay_level(std::span<const LevelMerge>(order).subspan(begin, end - begin));
    }
    count_heavy_edges();
    result_.merges = static_cast<int64_t>(count);
    return result_;
  }

 private:
  struct Entry {
    uint32_t vertex;  // the neighbour, or a vertex that has become part of it
    int64_t weight;
  };

  struct Candidate {
    double value;  // w(A, vertex) / S(vertex)
    uint32_t vertex;
    bool operator<(const Candidate& other) const { return value < other.value; }
  };

  // 32 bytes: a list entry reads one cache line of its neighbour.
  struct Node {
    int64_t weight = 0;
    uint32_t seen = 0;
    uint32_t inside = 0;
    uint32_t up = 0;      // itself: present on the current level, or not made yet
    uint32_t next = 0;    // the members of a cluster of the current level form a ring,
    uint32_t member = 0;  // and this is one of them
    uint32_t size = 1;    // leaves
  };

  using LevelMerge = std::pair<int32_t, uint32_t>;  // level, node

  bool is_leaf(uint32_t node) const { return node < leaves_; }
  bool is_inside(uint32_t vertex) const { return nodes_[vertex].inside == stamp_; }

  uint32_t child(uint32_t node, size_t which) const {
    return static_cast<uint32_t>(merges_.children[2 * (node - leaves_) + which]);
  }

  // Whether a node exists at the start of the current level, rather than being made there.
  bool is_vertex(uint32_t node) const {
    return is_leaf(node) || merges_.level[node - leaves_] < level_;
  }

  // Whether a merge of the current level is the last one of its group.
  bool is_group(uint32_t node) const {
    return parent_[node] == kNoParent || merges_.level[parent_[node] - leaves_] != level_;
  }

  std::span<Entry> list(uint32_t node) {
    if (is_leaf(node)) return std::span(leaf_entries_).subspan(start_[node], length_[node]);
    return merge_lists_[node - leaves_];
  }

  void shrink_list(uint32_t node, size_t length) {
    if (is_leaf(node)) {
      length_[node] = static_cast<uint32_t>(length);
    } else if (length > 0) {
      merge_lists_[node - leaves_].resize(length);
    } else {
      Vec<Entry>().swap(merge_lists_[node - leaves_]);
    }
  }

  template <class Visit>
  void for_members(uint32_t node, Visit&& visit) {
    const uint32_t first = nodes_[node].member;
    uint32_t x = first;
    do {
      visit(nodes_[x]);
      x = nodes_[x].next;
    } while (x != first);
  }

  uint32_t find(uint32_t vertex) {
    while (nodes_[vertex].up != vertex) {
      nodes_[vertex].up = nodes_[nodes_[vertex].up].up;
      vertex = nodes_[vertex].up;
    }
    return vertex;
  }

  void build_lists(const Graph& graph) {
    start_.assign(leaves_ + 1, 0);
    length_.assign(leaves_, 0);
    for (const auto& ends : {graph.u, graph.v}) {
      for (const int64_t x : ends) ++start_[static_cast<size_t>(x) + 1];
    }
    for (size_t x = 0; x < leaves_; ++x) start_[x + 1] += start_[x];
    leaf_entries_.resize(start_[leaves_]);
    for (size_t i = 0; i < graph.u.size(); ++i) {
      const uint32_t a = static_cast<uint32_t>(graph.u[i]);
      const uint32_t b = static_cast<uint32_t>(graph.v[i]);
      leaf_entries_[start_[a] + length_[a]++] = {b, graph.w[i]};
      leaf_entries_[start_[b] + length_[b]++] = {a, graph.w[i]};
      pace_.step(4);
    }
    for (uint32_t x = 0; x < leaves_; ++x) {
      const size_t given = length_[x];
      normalise(x);
      if (length_[x] != given) {
        reject("leaf " + std::to_string(x) +
               " has an edge that is given twice; pairs must be distinct");
      }
    }
  }

  // Brings the list of a vertex to the current level: every neighbour once. The vertex itself is
  // not among them, as members are left out when the list of a cluster is made.
  void normalise(uint32_t x) {
    ++stamp_;
    const std::span<Entry> entries = list(x);
    pace_.step(8 + 8 * entries.size());
    size_t kept = 0;
    for (const Entry entry : entries) {
      const uint32_t y = find(entry.vertex);
      Node& node = nodes_[y];
      if (node.seen == stamp_) {
        entries[static_cast<size_t>(node.weight)].weight += entry.weight;
      } else {
        node.seen = stamp_;
        node.weight = static_cast<int64_t>(kept);  // here: its place in the list
        entries[kept++] = {y, entry.weight};
      }
    }
    shrink_list(x, kept);
  }

  void replay_level(std::span<const LevelMerge> level) {
    level_ = level.front().first;
    for (const auto& [unused, merge] : level) {
      const uint32_t a = child(merge, 0), b = child(merge, 1);
      for (const uint32_t x : {a, b}) {
        if (!is_vertex(x)) continue;
        normalise(x);
        load_[x] = list(x).size() + 1;
        nodes_[x].next = nodes_[x].member = x;
      }
      load_[merge] = load_[a] + load_[b];
      heavy_[merge - leaves_] = load_[a] >= load_[b] ? a : b;
    }
    for (const auto& [unused, merge] : level) {
      if (is_group(merge) || heavy_[parent_[merge] - leaves_] != merge) replay_path(merge);
    }
    // The level changes only now, because all its merges are judged against its start.
    for (const auto& [unused, merge] : level) {
      if (is_group(merge)) for_members(merge, [top = merge](Node& node) { node.up = top; });
    }
  }

  void replay_path(uint32_t top) {
    path_.clear();
    touched_.clear();
    ++stamp_;
    uint32_t a = top;
    for (; !is_vertex(a); a = heavy_[a - leaves_]) path_.push_back(a);
    nodes_[a].inside = stamp_;
    heap_.clear();
    absorb(a, /*feed_heap=*/false);
    refill_heap();
    for (size_t step = path_.size(); step-- > 0;) {
      const uint32_t merge = path_[step];
      const uint32_t b = child(merge, 0) == a ? child(merge, 1) : child(merge, 0);
      for_members(b, [this](Node& node) { node.inside = stamp_; });
      judge(merge, a, b);
      pace_.step(16 + 16 * list(b).size(), 1);
      absorb(b, /*feed_heap=*/step > 0);
      nodes_[merge].size = nodes_[a].size + nodes_[b].size;
      nodes_[merge].member = nodes_[a].member;
      std::swap(nodes_[nodes_[a].member].next,
                nodes_[nodes_[b].member].next);  // two rings into one
      a = merge;
    }
    Vec<Entry>& entries = merge_lists_[top - leaves_];
    entries.reserve(static_cast<size_t>(std::count_if(
        touched_.begin(), touched_.end(), [this](uint32_t y) { return !is_inside(y); })));
    for (const uint32_t y : touched_) {
      if (!is_inside(y)) entries.push_back({y, nodes_[y].weight});
    }
  }

  // The members of b are marked as inside already: what is in its list and inside is in a.
  void judge(uint32_t merge, uint32_t a, uint32_t b) {
    int64_t between = 0;
    double outside_b = 0;
    for (const Entry& entry : list(b)) {
      if (is_inside(entry.vertex)) {
        between += entry.weight;
      } else {
        outside_b = std::max(outside_b, linkage(entry.weight, nodes_[entry.vertex].size, 1));
      }
    }
    outside_b /= nodes_[b].size;
    const double outside_a = heaviest_outside() / nodes_[a].size;
    const double own = linkage(between, nodes_[a].size, nodes_[b].size);
    const double most = std::max({outside_a, outside_b, own});
    const double least = std::min({min_merge_[a], min_merge_[b], own});
    min_merge_[merge] = least;

    const double slack = 1 + limits_.epsilon;
    const double real = own * limits_.resolution;
    const bool good = own > 0 && most <= slack * least * (1 + kRounding) &&
                      real >= limits_.threshold / slack * (1 - kRounding);
    if (!good) ++result_.bad_merges;
    result_.worst_goodness = std::max(result_.worst_goodness, least > 0 ? most / least : kInfinity);
    const double error = std::abs(merges_.similarity[merge - leaves_] - real);
    if (!(error <= kSimilarityRounding * real)) ++result_.wrong_similarities;  // also true for nan
  }

  // Adds the list of b to w(A, .), and frees it. The last call for a path need not update the heap.
  void absorb(uint32_t b, bool feed_heap) {
    for (const Entry& entry : list(b)) {
      Node& y = nodes_[entry.vertex];
      if (y.inside == stamp_) continue;
      if (y.seen != stamp_) {
        y.seen = stamp_;
        y.weight = 0;
        touched_.push_back(entry.vertex);
      }
      y.weight += entry.weight;
      if (feed_heap) {
        heap_.push_back({linkage(y.weight, y.size, 1), entry.vertex});
        std::push_heap(heap_.begin(), heap_.end());
      }
    }
    shrink_list(b, 0);
    // Outdated entries may be many: memory must be bounded by the neighbours, not by the pushes.
    if (heap_.size() > 2 * touched_.size() + 64) refill_heap();
  }

  void refill_heap() {
    heap_.clear();
    for (const uint32_t y : touched_) {
      if (!is_inside(y)) heap_.push_back({linkage(nodes_[y].weight, nodes_[y].size, 1), y});
    }
    std::make_heap(heap_.begin(), heap_.end());
  }

  // The largest w(A, y) / S(y) of a y that is not inside; 0 if there is none.
  double heaviest_outside() {
    while (!heap_.empty() && is_inside(heap_.front().vertex)) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    return heap_.empty() ? 0 : heap_.front().value;
  }

  void count_heavy_edges() {
    const double lightest = limits_.threshold / (1 + limits_.epsilon) * (1 + kRounding);
    for (uint32_t x = 0; x < nodes_.size(); ++x) {
      if (parent_[x] != kNoParent) continue;
      normalise(x);
      for (const Entry& entry : list(x)) {
        if (entry.vertex < x) continue;  // every edge is in two lists
        const double own = linkage(entry.weight, nodes_[x].size, nodes_[entry.vertex].size);
        if (own * limits_.resolution >= lightest) ++result_.heavy_edges_left;
      }
    }
  }

  const size_t leaves_;
  const Merges merges_;
  const Vec<uint32_t> parent_;
  const Limits limits_;
  Pace pace_;
  CheckResult result_;

  Vec<Node> nodes_;
  Vec<double> min_merge_;  // M, by node
  Vec<size_t> start_;      // of a leaf's list in leaf_entries_
  Vec<uint32_t> length_;   // of a leaf's list
  Vec<Entry> leaf_entries_;
  Vec<Vec<Entry>> merge_lists_;  // by merge; empty when not yet made or absorbed

  // Of the current level.
  int32_t level_ = 0;
  Vec<size_t> load_;     // by node
  Vec<uint32_t> heavy_;  // by merge: the child with the larger load

  // Of the current path.
  uint32_t stamp_ = 0;
  Vec<uint32_t> path_;     // merges, the topmost first
  Vec<uint32_t> touched_;  // neighbours of A, some of them inside by now
  Vec<Candidate> heap_;
};

}  // namespace dynhac::replay

#endif  // DYNHAC_CHECK_REPLAY_H_
