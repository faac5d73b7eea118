// SubgraphHAC: merges good edges inside one part of a graph until none is left.
//
// The *active* vertices are those of the part; only they merge. Their edges to *outside* vertices
// are never merged, but count when a merge is judged. An outside vertex stays as it was given, also
// if it merges in its own part meanwhile: linkages never grow by merging, so the judgement is on
// the safe side, and parts can be run in any order or at the same time.
//
// A queue has vertices, the one with the largest linkage (when it was queued) first. The vertex
// that is taken from it merges along its heaviest good edge. The result of the merge is queued. A
// vertex without a good edge *rests*, and *watches* its heaviest neighbour: it is queued again when
// that one has merged. An edge becomes good only when the largest linkage of one of its ends falls,
// and that falls only when the heaviest neighbour merges: so no good edge is left at the end. Who
// is queued again gets its turn at the linkage at which more of its edges may be good. So a hub
// that absorbs one neighbour after the other does not wake all the others every time.
//
// Ties are decided by ranks: the vertices in the order of a hash of their names. A cluster has the
// smallest rank of its members, and larger ranks are preferred. Nothing depends on the order in
// which vertices and edges are added.
//
// A cluster lives in the slot of one of its members, the one with more neighbours; `up` leads from
// the other slots to it. Its neighbours are in a map from slots to weights, and in a heap of
// entries (w / size of the neighbour, rank of the neighbour). That value does not depend on the
// cluster's own size: growing does not change it, which makes hubs cheap. It does change when the
// neighbour merges, and then the entry is not touched: entries are upper bounds, brought up to date
// when they come to the top.
//
// Invariants:
// - The map of a live cluster has live slots only, and is symmetric between active ones.
// - For every neighbour there is a heap entry that is not below its current value.
// - A live cluster has at most one valid entry in the queue and in all lists of watchers together:
//   the one with its current version.

#ifndef DYNHAC_HIERARCHY_SUBGRAPH_RUN_H_
#define DYNHAC_HIERARCHY_SUBGRAPH_RUN_H_

#include <cstdint>

#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/hierarchy/types.h"

namespace dynhac {

// Of sums of sizes, and of weights as long as no other bound is given: up to here every integer is
// an exact double.
inline constexpr int64_t kLargestSum = int64_t{1} << 53;

class SubgraphRun {
 public:
  struct Step {
    int64_t a, b;  // names; the union is named a
    int64_t size_a, size_b;
    Weight w;
    double similarity;  // linkage, in units of the weights
    double least;       // the smallest similarity of all merges that made the union
  };

  explicit SubgraphRun(const Rule& rule, Poll* poll = nullptr, Weight largest = kLargestSum)
      : rule_(rule), largest_(largest), pace_(poll) {}

  // Begins a part. Then come its vertices, then outside ones and edges; slots count from 0.
  void clear();
  void add_vertex(int64_t name, int64_t size, double least, uint32_t degree);
  uint32_t add_outside(int64_t name, int64_t size);
  // Adds a half edge. An edge between vertices of the part must be added in both directions.
  // Returns whether it is new.
  bool add_edge(uint32_t from, uint32_t to, Weight w) {
    return own_[from].weights.insert(to, w).second;
  }

  // Throws std::invalid_argument when a sum of weights exceeds `largest`, or one of sizes
  // kLargestSum.
  void run();

  uint32_t active() const { return static_cast<uint32_t>(own_.size()); }
  bool is_active(uint32_t slot) const { return slot < active(); }
  const Vec<Step>& steps() const { return steps_; }
  const Weight* weight(uint32_t from, uint32_t to) const { return own_[from].weights.find(to); }

  // After a run: the cluster of a vertex, as the slot that it lives in, and what it is.
  uint32_t image(uint32_t slot);
  int64_t name(uint32_t slot) const { return nodes_[slot].name; }
  int64_t size(uint32_t slot) const { return nodes_[slot].size; }
  double least(uint32_t slot) const { return nodes_[slot].least; }
  double largest_linkage(uint32_t slot);  // 0 without neighbours
  const FlatMap<Weight>& neighbours(uint32_t slot) const { return own_[slot].weights; }

 private:
  struct Node {
    int64_t name, size;
    double least;
    uint32_t rank;
    uint32_t up;             // itself: a live cluster, or outside
    uint32_t version = 0;    // counts how often it was queued or merged
    uint32_t watch = kNone;  // first of the list of its watchers
  };
  struct Entry {
    double value;
    uint32_t rank, slot;
    bool operator<(const Entry& other) const {
      return value != other.value ? value < other.value : rank < other.rank;
    }
  };
  struct Neighbours {
    FlatMap<Weight> weights;
    Vec<Entry> heap;
  };
  struct Queued {
    double linkage;
    uint32_t rank, slot, version;
    bool operator<(const Queued& other) const {
      return linkage != other.linkage ? linkage < other.linkage : rank < other.rank;
    }
  };
  struct Watcher {
    double next_good;  // below this largest linkage, more of its edges may be good
    uint32_t slot, version, next;
  };

  double between(uint32_t a, uint32_t b, Weight w) const {
    return linkage(w, nodes_[a].size, nodes_[b].size);
  }
  Entry entry(uint32_t neighbour, Weight w) const {
    return {linkage(w, nodes_[neighbour].size, 1), nodes_[neighbour].rank, neighbour};
  }

  void give_ranks();
  void fill_heap(uint32_t v);
  const Entry* heaviest(uint32_t v);
  static void drop_heaviest(Vec<Entry>& heap);
  void examine(uint32_t v);
  bool good(uint32_t v, double largest, uint32_t y, double l);
  void queue(uint32_t v, double most);
  void watch(uint32_t v, uint32_t target, double next_good);
  void queue_watchers(uint32_t of);
  void merge(uint32_t a, uint32_t b, double l);
  void move_neighbours(uint32_t from, uint32_t to);

  const Rule rule_;
  const Weight largest_;
  Pace pace_;
  Vec<Node> nodes_;      // by slot; active ones first
  Vec<Neighbours> own_;  // of active slots
  Vec<Queued> queue_;    // a heap
  Vec<Watcher> watchers_;
  Vec<Step> steps_;
  Vec<Entry> aside_;  // buffers
  Vec<uint32_t> order_;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_SUBGRAPH_RUN_H_
