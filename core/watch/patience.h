// Patience: changes of cluster ids are reported only when they have lasted.
//
// A patient watch has two flat clusterings. The *raw* one is the present one, in clusters with ids
// and steps of their own. The *reported* one is what users see. Patience knows of the raw
// clustering only its steps and the members of its clusters, so any kind of raw clusters will do.
//
// In every update, reported and raw clusters are *matched* by the number of points that they share,
// the most first; where numbers are equal, the older reported cluster and then the older raw
// cluster wins. A reported cluster without a match is *ending*, a raw cluster without one is
// *beginning*; both wait. Reported and raw clusters that share a point cannot both wait, since they
// could be matched.
//
// - A point is reported in the cluster that is matched with its raw cluster, or in no cluster if
//   its raw cluster is none; but it stays in its reported cluster as long as that one is
//   ending or its raw cluster is beginning.
// - A new point of a beginning cluster joins the reported cluster (or none) that has most of its
//   points.
// - A point that leaves the model leaves its reported cluster. One without points ends at once.
// - What has waited for the patience is reported: a beginning cluster gets a new id and all its
//   points; the points of an ending one go where they are in the raw clustering, and its id ends.
// - If the match passes from one cluster to another, the time that the other has waited passes in
//   the opposite direction. (The difference of two matchings consists of alternating paths: time
//   passes from one end of a path to the other.) So a merge of two clusters of about the same size
//   is reported even if now one and now the other is the larger part.
//
// So after updates that change no raw cluster, for as long as the patience, both are one partition.
//
// Points are recorded only where need be. A raw cluster has a *usual* reported cluster; *held* are
// the points that are reported in another one. *Pairs* count them by raw and reported cluster. Held
// points exist only while something waits. The cost of an update depends on what changed and on the
// number of clusters that wait; the points of these are visited when they move.
//
// prepare() computes a step within an update; commit() makes it part of the state and cannot fail.

#ifndef DYNHAC_WATCH_PATIENCE_H_
#define DYNHAC_WATCH_PATIENCE_H_

#include <optional>
#include <span>

#include "core/base/memory.h"
#include "core/base/number.h"
#include "core/watch/undo_map.h"
#include "core/watch/watch_step.h"

namespace dynhac {

// The clusters that patience is applied to.
class RawClusters {
 public:
  struct Member {
    int64_t cluster, key;
  };
  virtual ~RawClusters() = default;
  // Appends the members of clusters, which are ascending, as they are after the update.
  virtual void members(std::span<const int64_t> clusters, Vec<Member>& found) const = 0;
};

namespace internal {

struct Reported {
  int64_t size = 0;
  int64_t raw = kNoCluster;  // its match; none: it is ending
};
struct Raw {
  int64_t size = 0;
  int64_t usual = kNoCluster;
  int64_t reported = kNoCluster;  // its match; none: it is beginning
};
struct Held {
  int64_t reported = kNoCluster, raw = kNoCluster;
};

}  // namespace internal

class Patience {
 public:
  // The keys of the points that an update added and removed, ascending. A point that was replaced
  // is in neither.
  struct Points {
    std::span<const int64_t> added, removed;
  };
  // All of it as columns, for restore().
  struct State {
    Vec<int64_t> usual, reported;          // by raw cluster, in the order of its ids
    Vec<int64_t> held_key, held_reported;  // by key
    Vec<int64_t> waiting, since,
        kind;  // the reported, then the raw ones; kind 1: since is a double
    int64_t next = 0;
  };

  explicit Patience(Number length) : length_(length) {}

  // Takes over raw clusters: all are reported, under their own ids.
  void start(const WatchStep& raw, int64_t next_cluster);
  // `now` is the version of the model or its clock, whichever the patience is measured in.
  void prepare(const WatchStep& raw, const Points& points, const RawClusters& clusters,
               const Moment& moment, Number now);
  void commit() noexcept;
  void abandon() noexcept;

  // Steps that were not dropped yet, the oldest first.
  const Vec<WatchStep>& steps() const { return steps_; }
  void drop_steps(size_t count) {
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<ptrdiff_t>(count));
  }

  // The reported cluster of a point in a raw cluster.
  int64_t reported(int64_t key, int64_t raw) const;
  struct Cluster {
    int64_t id, size;
  };
  Vec<Cluster> clusters() const;                 // by id
  Vec<int64_t> usual_of(int64_t cluster) const;  // the raw clusters that it is the usual one of
  template <class Visit>
  void for_each_held(Visit&& visit) const {  // visit(key, reported cluster)
    held_.for_each([&](int64_t key, const Held& held) { visit(key, held.reported); });
  }

  State state() const;
  // Takes over a saved state. Throws std::invalid_argument unless it is one for these raw clusters,
  // which are ascending; `labels` are the raw clusters of the points held, in their order, and
  // `version` is that of the model if the patience is measured in updates.
  void restore(const State& state, std::span<const Cluster> raw, std::span<const int64_t> labels,
               std::optional<int64_t> version);

 private:
  using Reported = internal::Reported;
  using Raw = internal::Raw;
  using Held = internal::Held;
  struct Pair {
    int64_t raw, reported, count;
    int64_t moved = 0;  // how many of these are in moved_
    bool same_pair(const Pair& o) const { return raw == o.raw && reported == o.reported; }
    static bool before(const Pair& a, const Pair& b) {
      return a.raw != b.raw ? a.raw < b.raw : a.reported < b.reported;
    }
  };
  struct Waiting {
    int64_t id;
    Number since;
  };
  struct Moved {
    int64_t key, from, reported, to;  // raw clusters before and now; kNew: it is a new point
    bool gone;
  };
  struct Transfer {
    int64_t from, to, key;
  };
  // The clusters whose match may change, with their matches before and now.
  struct Matched {
    int64_t id, before = kNoCluster, now = kNoCluster;
  };
  struct Shift {
    int64_t raw, from, to;
  };

  void require_placed() const;
  bool due(const Number& since, const Number& now) const;
  int64_t usual(int64_t raw) const;
  void forget();
  void label_moved(const WatchStep& raw, const Points& points);
  void take_raw(const WatchStep& raw);
  void place_moved(const Points& points);
  void list_involved(const WatchStep& raw);
  void match();
  void wait(Number now);
  Number waited(bool reported, int64_t id, Number now) const;
  void report_due(Number now);
  int64_t group_size(const Raw& raw, std::span<const Pair> held) const;
  int64_t most_of(const Raw& raw, std::span<const Pair> held) const;
  int64_t target(int64_t raw, int64_t reported) const;
  void shift_usual(const RawClusters& clusters);
  void shift_held();
  void add_pairs();
  void resize(size_t first);
  void report(const Moment& moment);
  std::span<const Pair> pairs_of(int64_t raw) const;

  const Number length_;
  UndoMap<Reported> reported_;
  UndoMap<Raw> raws_;
  UndoMap<Held> held_;  // by key
  Vec<Pair> pairs_;
  Vec<Waiting> ending_, beginning_;  // by id
  int64_t next_cluster_ = 0;
  Vec<WatchStep> steps_;
  // Of the update in progress.
  bool prepared_ = false;
  Vec<Pair> pairs_now_, more_pairs_, merged_pairs_;
  Vec<Waiting> ending_now_, beginning_now_;
  int64_t next_cluster_now_ = 0;
  Vec<Moved> moved_;
  Vec<Matched> matched_reported_, matched_raws_;  // by id
  Vec<Waiting> due_beginnings_;  // raw clusters that get an id, by id of the raw cluster
  Vec<Transfer> transfers_;
  Vec<WatchStep::Size> sizes_;  // reported clusters that were resized, with the sizes before
  WatchStep step_;
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_PATIENCE_H_
