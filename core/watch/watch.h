// A flat clustering kept up to date with the dendrogram: stable ids, and the moves of every update.
//
// A FlatRule says which clusters there are, and which of them an update may have changed. A cluster
// of at least min_size leaves has an id; leaves of smaller ones belong to no cluster (kNoCluster).
//
// Ids: pairs of an old and a new cluster are matched by the number of leaves they share, the most
// first, and a new cluster takes over the id of its old one. On a merge the id of the larger part
// survives, on a split the largest part keeps it; where numbers are equal, the older id wins. Ids
// are never reused.
//
// prepare() computes a step within an update; commit() makes it part of the state and cannot fail.

#ifndef DYNHAC_WATCH_WATCH_H_
#define DYNHAC_WATCH_WATCH_H_

#include <memory>
#include <span>
#include <utility>

#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/hierarchy/node_store.h"
#include "core/watch/difference.h"
#include "core/watch/flat_rule.h"
#include "core/watch/overlap.h"
#include "core/watch/watch_step.h"

namespace dynhac {

class Watch {
 public:
  // The parts of the engine that identify leaves.
  struct Leaves {
    const NodeStore& nodes;
    std::span<const int64_t> keys;  // by vertex
    // Pairs of an old and a new leaf with the same key: the vertex was removed and added again.
    std::span<const std::pair<NodeRef, NodeRef>> replaced;
  };

  Watch(std::unique_ptr<FlatRule> rule, uint32_t min_size)
      : rule_(std::move(rule)), min_size_(min_size) {}

  // Takes over the present dendrogram; the first step lists all its clusters.
  void start(const Leaves& leaves, const Moment& moment);

  void prepare(const Difference& difference, const Leaves& leaves, const Moment& moment);
  void commit() noexcept;
  void abandon() noexcept;

  // Between prepare() and commit(): the step, and visit(root, id) for the clusters after it.
  const WatchStep& prepared_step() const { return step_; }
  template <class Visit>
  void for_each_prepared(Visit&& visit) const {
    cluster_of_.for_each([&](NodeRef root, int64_t id) {
      if (!before_of_.contains(root)) visit(root, id);
    });
    for (const Cluster& c : now_) visit(c.root, c.id);
  }

  // Steps that were not dropped yet, the oldest first.
  const Vec<WatchStep>& steps() const { return steps_; }
  void drop_steps(size_t count) {
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(count));
  }

  // By root.
  const FlatMap<int64_t>& clusters() const { return cluster_of_; }
  int64_t next_cluster() const { return next_cluster_; }

  // After start(): replaces the ids by those of a saved watch. Throws std::invalid_argument unless
  // the roots are those of the present clusters and the ids are valid.
  void restore(std::span<const NodeRef> roots, std::span<const int64_t> clusters,
               int64_t next_cluster);

 private:
  struct Cluster {
    NodeRef root;
    uint32_t size;
    int64_t id = kNoCluster;
    uint32_t size_before = 0;  // of the old cluster whose id it takes over
    bool continued = false;    // of an old cluster: a new one takes over its id
  };
  struct Transfer {
    int64_t from, to;
    uint32_t atom;
  };

  void forget();
  void join_replaced(const Leaves& leaves);
  void list_clusters(const Difference& difference);
  void add_new(NodeRef root, uint32_t size);
  void match();
  void report(const Leaves& leaves, const Moment& moment);
  void report_sizes();

  const std::unique_ptr<FlatRule> rule_;
  const uint32_t min_size_;
  FlatMap<int64_t> cluster_of_;
  int64_t next_cluster_ = 0;
  Vec<WatchStep> steps_;
  // Of the update in progress.
  bool prepared_ = false;
  WatchStep step_;
  FlatChange change_;
  FlatMap<uint32_t> before_of_, now_of_;  // by root
  Vec<NodeRef> leaf_stack_;
  Vec<Cluster> before_, now_;  // those that have an id, and those that get one
  Vec<Overlap> overlaps_;      // of before_ and now_
  Vec<Transfer> transfers_;
  int64_t next_cluster_after_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_WATCH_H_
