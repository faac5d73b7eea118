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

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/base/memory.h"
#include "core/check/check.h"

namespace dynhac::replay {

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
  Replay(const Graph& graph, const Merges& merges, Vec<uint32_t> parent, const Limits& limits);

  // To be called once.
  CheckResult run();

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
  uint32_t child(uint32_t node, size_t which) const;
  bool is_vertex(uint32_t node) const;
  bool is_group(uint32_t node) const;
  bool is_inside(uint32_t vertex) const { return nodes_[vertex].inside == stamp_; }
  std::span<Entry> list(uint32_t node);
  void shrink_list(uint32_t node, size_t length);
  template <class Visit>
  void for_members(uint32_t node, Visit&& visit);
  uint32_t find(uint32_t vertex);

  void build_lists(const Graph& graph);
  void normalise(uint32_t x);
  void replay_level(std::span<const LevelMerge> level);
  void replay_path(uint32_t top);
  void judge(uint32_t merge, uint32_t a, uint32_t b);
  void absorb(uint32_t b, bool feed_heap);
  void refill_heap();
  double heaviest_outside();
  void count_heavy_edges();

  const size_t leaves_;
  const Merges merges_;
  const Vec<uint32_t> parent_;
  const Limits limits_;
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
