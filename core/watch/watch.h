// A flat clustering that follows the dendrogram: stable ids, and what moved with every update.
//
// The clusters at theta are the maximal subtrees all of whose merges have a linkage >= theta; their
// topmost nodes are the *roots*. A cluster of at least min_size leaves has an id; leaves of smaller
// ones belong to no cluster (kNoCluster).
//
// What an update changed is taken from the Difference of the dendrograms before and after it, and
// costs what that holds: subtrees that are as they were, and hang below dirty nodes, are *atoms*.
// An atom whose linkages are all >= theta is in one cluster before and in one now; an atom with a
// smaller linkage inside has its clusters inside too, and they stay. So old and new clusters are
// compared by the atoms they share, and only the leaves of atoms that changed cluster are visited.
//
// Ids: pairs of an old and a new cluster are matched by the number of leaves they share, the most
// first, and a new cluster takes over the id of its old one. On a merge the id of the larger part
// survives, on a split the largest part keeps it; where numbers are equal, the older id wins. Ids
// are never used again.
//
// prepare() computes a step within an update, commit() takes it and cannot fail.

#ifndef DYNHAC_WATCH_WATCH_H_
#define DYNHAC_WATCH_WATCH_H_

#include <span>
#include <utility>

#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/hierarchy/node_store.h"
#include "core/watch/difference.h"
#include "core/watch/overlap.h"

namespace dynhac {

inline constexpr int64_t kNoCluster = -1;

// What one update did to the clusters of a watch.
struct WatchStep {
  struct Size {
    int64_t cluster, before, now;  // 0: not there
  };
  struct Move {
    int64_t from, to;
    size_t end;  // of its keys; they begin where those of the move before it end
  };
  int64_t version = 0;
  Vec<Size> sizes;  // of the clusters that leaves left or joined, by id
  Vec<Move> moves;  // by from, then to
  Vec<int64_t> keys;

  bool empty() const { return sizes.empty() && moves.empty(); }
};

class Watch {
 public:
  // The parts of the engine that say who a leaf is.
  struct Leaves {
    const NodeStore& nodes;
    std::span<const int64_t> keys;  // by vertex
    // Leaves that are gone although their key is still there, as another leaf.
    std::span<const std::pair<NodeRef, NodeRef>> replaced;
  };

  Watch(double theta, double resolution, uint32_t min_size)
      : theta_(theta), resolution_(resolution), min_size_(min_size) {}

  // From nothing to the dendrogram as it is.
  void start(const Leaves& leaves, int64_t version);

  void prepare(const Difference& difference, const Leaves& leaves, int64_t version);
  void commit() noexcept;
  void abandon() noexcept { prepared_ = false; }

  // Steps wait, the oldest first, until they are dropped.
  const Vec<WatchStep>& steps() const { return steps_; }
  void drop_steps(size_t count) {
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(count));
  }

  // By root.
  const FlatMap<int64_t>& clusters() const { return cluster_of_; }
  int64_t next_cluster() const { return next_cluster_; }

  double theta() const { return theta_; }
  uint32_t min_size() const { return min_size_; }

  // The state of a saved watch, in the place of start(). Roots must be those of this dendrogram.
  void restore(std::span<const NodeRef> roots, std::span<const int64_t> clusters,
               int64_t next_cluster);

 private:
  struct Atom {
    NodeRef n;
    uint32_t size;
    NodeRef root_before = kNone, root_now = kNone;
    bool seen_before = false, seen_now = false;
  };
  struct Cluster {
    NodeRef root;
    uint32_t size;
    int64_t id = kNoCluster;
    uint32_t size_before = 0;  // of the cluster whose id it takes over
    bool goes_on = false;      // of an old one: its id is taken over
  };
  struct Visit {
    NodeRef n, root;
  };
  struct Transfer {
    int64_t from, to;
    uint32_t atom;
  };

  bool joins(const Node& node) const { return node.least_merge * resolution_ >= theta_; }
  void forget();
  template <bool kNow>
  void walk(const Difference& difference);
  Atom& atom(NodeRef n);
  void settle_atoms(const Difference& difference, const Leaves& leaves);
  void list_clusters(const Difference& difference);
  void add_new(NodeRef root, uint32_t size);
  void match();
  void report(const Leaves& leaves, int64_t version);
  void report_sizes();
  void collect_leaves(const Leaves& leaves, NodeRef n);

  const double theta_, resolution_;
  const uint32_t min_size_;
  FlatMap<int64_t> cluster_of_;
  int64_t next_cluster_ = 0;
  Vec<WatchStep> steps_;
  // Of the update in progress.
  bool prepared_ = false;
  WatchStep step_;
  Vec<Atom> atoms_;
  FlatMap<uint32_t> atom_of_;             // by node
  FlatMap<uint32_t> before_of_, now_of_;  // by root
  Vec<Visit> stack_;
  Vec<NodeRef> roots_before_, roots_now_;
  Vec<Cluster> before_, now_;  // those that have an id, and those that get one
  Vec<Overlap> overlaps_;      // of before_ and now_
  Vec<Transfer> transfers_;
  int64_t next_cluster_after_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_WATCH_H_
