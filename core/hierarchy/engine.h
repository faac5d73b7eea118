// The engine: a graph and its (1 + epsilon)-good dendrogram, kept up to date under batches of
// changes.
//
// Level 0 is the user's graph. Vertices of level i with the same image on level i + 1 are a group;
// its merges are the part of the dendrogram between them and their image. A level is updated by
// LevelUpdate, which also computes the changes of the next level; the update ends when there are
// none.
//
// An update is one transaction over all levels, the nodes and the ids: any exception in it (a
// rejected batch, no memory, an interrupted wait) rolls everything back. Readers share a lock that
// the writer holds exclusively.
//
// Same parameters and same sequence of updates give the same state, whatever the number of threads.

#ifndef DYNHAC_HIERARCHY_ENGINE_H_
#define DYNHAC_HIERARCHY_ENGINE_H_

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/base/fair_lock.h"
#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/hierarchy/batch.h"
#include "core/hierarchy/clusters.h"
#include "core/hierarchy/last_level.h"
#include "core/hierarchy/level.h"
#include "core/hierarchy/level_update.h"
#include "core/hierarchy/node_store.h"
#include "core/watch/patience.h"
#include "core/watch/watch.h"

namespace dynhac {

struct NodeVersion {
  int64_t id;
  double similarity;
  int64_t size;
  bool passed_on;  // the id is in both lists: a successor keeps it

  bool operator==(const NodeVersion&) const = default;
};

struct Change {
  Counters counters;
  Vec<NodeVersion> created, removed;
  double seconds = 0;
};

// Leaf i is keys[i], in order of insertion; merge j has index n + j, children come before parents.
struct Snapshot {
  int64_t version = 0;
  Vec<int64_t> keys;
  Vec<int64_t> children;  // two per merge
  Vec<double> similarity, min_similarity;
  Vec<int64_t> size, node_ids;
  Vec<int32_t> level;

  bool operator==(const Snapshot&) const = default;
};

// Every edge once, as leaf indices of the snapshot taken under the same lock.
struct EdgeList {
  Vec<int64_t> u, v;
  Vec<Weight> w;
};

// The merges above a leaf, from the first one up.
struct Path {
  Vec<int64_t> node_ids;
  Vec<double> similarity;
  Vec<int64_t> size;
};

// The lowest common ancestor of two leaves, and the paths to it.
struct Meeting {
  Path a, b;  // up to and including that node; up to the roots if there is none
  bool meet = false;
  double least = 0;  // the smallest linkage in the subtree of that node
};

// Where a vertex that is not in the graph would join the hierarchy (placement.cc).
struct Placement {
  size_t edge = kNoEdge;  // one of its edges, to a leaf of the cluster that it joins
  double similarity = 0;  // at which it joins that cluster
  uint32_t size = 0;      // of that cluster
  int64_t node = -1;      // the id of the merge that made that cluster; -1 if it is a leaf

  static constexpr size_t kNoEdge = std::numeric_limits<size_t>::max();  // it has no edges
};

class Engine {
 public:
  // Parameters must be valid: epsilon >= 0, threshold >= 0, resolution > 0, all finite; threads
  // >= 1.
  Engine(double epsilon, double threshold, double resolution, uint32_t threads);
  ~Engine();

  // Applies all of the batch or, on an exception, none of it. Throws BatchError, std::bad_alloc, or
  // what `poll` throws. `clock` is the time of the update, for watches. `on_read` is called when
  // the arrays of the batch are not needed any more; after that there is no BatchError.
  Change update(const Batch& batch, Poll* poll, const std::optional<Number>& clock = {},
                const std::function<void()>& on_read = {});

  size_t size() const;
  bool contains(int64_t key) const;
  bool steps_waiting() const;  // whether a watch has steps that have not been dropped
  Vec<int64_t> watch_handles() const;
  int64_t version() const;
  Vec<int64_t> keys() const;
  Snapshot snapshot() const;
  std::pair<Vec<int64_t>, EdgeList> edges_with_keys() const;
  Vec<std::pair<int64_t, int64_t>> level_sizes() const;  // vertices and edges

  // About single vertices (look_up.cc). Throws BatchError "unknown" with the index of the key.
  Vec<int64_t> degrees(std::span<const int64_t> keys) const;
  EdgeList edges_of(std::span<const int64_t> keys) const;  // u: the given key, v: the neighbour's
  struct Degrees {
    Vec<int64_t> keys, degrees;
  };
  // Without the given vertices: those of the neighbours of these that have less than `enough`
  // edges.
  Degrees low_degrees_without(std::span<const int64_t> keys, int64_t enough) const;
  Meeting meeting(int64_t a, int64_t b) const;

  // What is in the clusters 0..count-1 of a flat clustering, or in one of them (clusters.cc).
  // `labels` are by leaf, -1 for none; up to `most_nearest` other clusters are listed for each.
  // Nullopt: the engine is not at this version any more. Throws std::invalid_argument.
  std::optional<ClusterSummary> summarize(int64_t version, std::span<const int64_t> labels,
                                          int64_t count, std::optional<int64_t> only,
                                          size_t most_nearest) const;

  // The placement of a vertex with edges of these weights to these keys, which must differ. Weights
  // are rounded as those of an update are. Throws BatchError "unknown", or one that an update would
  // throw for a weight.
  Placement place(std::span<const int64_t> keys, std::span<const double> weights) const;

  // Watches are named by handles, which are never reused (watching.cc). Throws std::out_of_range
  // for an unknown handle.
  struct WatchParameters {
    std::optional<double> theta;  // nullopt: the automatic clusters
    uint32_t min_size;
    std::optional<Number> patience = {};
    bool in_time = false;  // whether the patience is a time, not a number of updates
  };
  int64_t add_watch(const WatchParameters& parameters);
  void remove_watch(int64_t handle) noexcept;
  Vec<WatchStep> steps(int64_t handle) const;  // those not dropped yet, the oldest first
  void drop_steps(int64_t handle, size_t count);
  struct WatchLabels {
    Vec<int64_t> keys;  // in order of insertion
    Vec<int64_t> clusters;
  };
  WatchLabels watch_labels(int64_t handle) const;
  struct WatchClusters {
    Vec<int64_t> ids, sizes, roots;  // roots: only of raw clusters, and of those without patience
    int64_t next = 0;
  };
  WatchClusters watch_clusters(int64_t handle) const;  // by id
  // All that restore_watch() needs: the raw clusters, and what is reported if there is patience.
  struct WatchState {
    WatchClusters raw;
    std::optional<Patience::State> reported;
  };
  WatchState watch_state(int64_t handle) const;
  int64_t cluster_of(int64_t handle, int64_t key) const;        // kNoCluster: none
  Vec<int64_t> members(int64_t handle, int64_t cluster) const;  // empty: no such cluster
  // Like add_watch, with the state that a watch had in the same state of the engine.
  int64_t restore_watch(const WatchParameters& parameters, const WatchState& state);
  size_t memory() const;

  struct Export {
    Snapshot snapshot;
    EdgeList edges;
    std::vector<std::string> wrong_caches;
  };
  Export export_all(Poll* poll = nullptr) const;

  double resolution() const { return resolution_; }
  uint32_t threads() const { return workers_.count(); }

  // For tests, before the first update.
  void start_epochs_at(uint32_t epoch) { epoch_ = epoch; }

 private:
  friend class EngineState;  // the persistent form; see state.h
  class Stage;               // from a batch to the changes of level 0; see stage.cc
  class Summarizer;          // see clusters.cc

  void rollback() noexcept;
  void collect(Change& change);
  Vec<NodeRef> ordered_leaves() const;
  Vec<int64_t> keys_locked() const;
  Snapshot snapshot_locked() const;
  void number_merges_of_last_level(std::span<const NodeRef> merges, Snapshot& s) const;
  EdgeList edges_locked() const;
  std::vector<std::string> audit(Poll* poll) const;  // audit.cc
  // The same without the adjacency lists, which must be valid, as heaviest edges must.
  std::vector<std::string> audit_groups(Workers& workers, Poll* poll) const;
  uint64_t entries() const;  // of all adjacency lists
  Vertex vertex_of(int64_t key, size_t index = 0) const;
  Vec<NodeRef> merges_above(Vertex v) const;
  // The present clusters of a watch, and the reported ones if there is patience.
  struct Watched {
    int64_t handle;
    bool in_time;
    std::unique_ptr<Watch> raw;
    std::unique_ptr<Patience> patience;

    const Vec<WatchStep>& steps() const { return patience ? patience->steps() : raw->steps(); }
    int64_t reported(int64_t key, int64_t cluster) const {
      return patience ? patience->reported(key, cluster) : cluster;
    }
  };
  Watched make_watch(const WatchParameters& parameters) const;
  void prepare_watches(const Moment& moment);
  void commit_watches() noexcept;
  void abandon_watches() noexcept;
  const Watched& watch(int64_t handle) const;
  int64_t raw_cluster(const Watch& watch, Vertex v) const;
  WatchClusters raw_clusters(const Watch& watch) const;

  const double resolution_, threshold_;
  const Rule rule_;
  FairLock lock_;
  BlockArena arena_;  // must outlive the levels
  Vec<std::unique_ptr<Level>> levels_;
  LastLevel last_level_;
  NodeStore nodes_;
  FlatMap<Vertex, int64_t> ids_;
  Vec<int64_t> keys_;  // by vertex of level 0
  Weight total_ = 0;   // of all edges
  int64_t version_ = 0;
  uint32_t epoch_ = 0;
  Workers workers_;
  LevelUpdate level_update_;
  LevelChanges pending_, next_;  // of the level in progress, and of the one above it
  std::unique_ptr<Stage> stage_;
  Vec<Watched> watches_;
  int64_t next_watch_ = 0;
  Difference difference_;
  Vec<std::pair<NodeRef, NodeRef>> replaced_;  // see Watch::Leaves
  // What the transaction did to ids_ and total_.
  struct Id {
    int64_t key;
    Vertex v;
  };
  Vec<Id> erased_, inserted_;
  Weight total_before_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_ENGINE_H_
