// Points that come and go, and the hierarchy of their neighbour graph.
//
// Every point is a vertex of the engine's graph. A new point gets edges to its nearest neighbours,
// with similarities as weights. An update (see PointUpdate) takes a batch of deletions and
// insertions through ids, window, neighbour index and edges to the engine.
//
// Table, ids, index and engine always hold the same points. An index that failed half-way through a
// change, or that could not be put back after a failed update, is *lost*: it is not used again, and
// the next update gets another one from the chooser and fills it from the table.
//
// One thread at a time may call a model, but `dimension` may be called at any time. Readers of the
// engine and of the id table need no lock.

#ifndef DYNHAC_POINTS_POINT_MODEL_H_
#define DYNHAC_POINTS_POINT_MODEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/id_column.h"
#include "core/base/id_table.h"
#include "core/hierarchy/engine.h"
#include "core/neighbors/index.h"
#include "core/points/point_search.h"
#include "core/points/point_table.h"
#include "core/points/similarity.h"
#include "core/points/window.h"

namespace dynhac {

// Deletions, then insertions. The ids are of the kind that the model has.
struct PointBatch {
  IdColumn deleted;
  IdColumn inserted;
  std::span<const float> vectors;  // a row for every inserted point
  size_t dimension = 0;            // of the rows
  TimeKind time_kind = TimeKind::kNone;
  std::span<const int64_t>
      times;                    // orders of the timestamps of the inserted points, if they have any
  std::optional<Number> clock;  // a time to move the clock on to
};

struct PointChange : Change {
  IdColumn expired;   // by the window, the oldest first
  IdColumn repaired;  // joined to their nearest neighbours anew
  double seconds_search = 0;
  double seconds_total = 0;
};

// The engine rejected an edge that the neighbour search had found.
struct EdgeError : BatchError {
  EdgeError(const BatchError& error, IdColumn ends, double weight)
      : BatchError(error), ends(std::move(ends)), weight(weight) {}

  IdColumn ends;  // two ids
  double weight;
};

struct PointRules {
  size_t n_neighbors = 50;
  double least_weight = 0;  // smaller weights are 0 at the resolution of the engine
  bool repair = true;
};

class PointModel {
 public:
  // What is referred to must outlive the model. `index` may be one of the user's own, empty.
  PointModel(Engine& engine, IdTable& ids, const Similarity& similarity, IndexChooser& chooser,
             const PointRules& rules, const Window& window, IndexChoice index);

  // All or nothing. Throws BatchError for ids and timestamps that are wrong (unknown_id,
  // duplicate_delete, present_id, duplicate_id, inexact_times: index and other are positions in the
  // batch), EdgeError, and what engine, index, similarity and `poll` throw.
  PointChange update(const PointBatch& batch, Poll* poll);

  // Questions about vectors that are not in the model; nothing changes (point_search.cc). `vectors`
  // has rows of the model's dimension. Throws what index, similarity and `poll` throw.
  NearestPoints nearest(std::span<const float> vectors, size_t k, Poll* poll);
  // Where a point with these nearest neighbours would join the hierarchy: a placement for every
  // row. Its edge is a position in the rows. Throws BatchError, with such a position, for a weight
  // that an update would reject.
  Vec<Placement> place(const NearestPoints& nearest, Poll* poll) const;

  // Grows with every update, also one that changes nothing in the graph.
  int64_t version() const { return version_; }
  int64_t dimension() const { return dimension_; }          // -1 before the first points
  const PointTable* table() const { return table_.get(); }  // nullptr before the first points
  const Window& window() const { return window_; }
  IdColumn ids_of(std::span<const int64_t> slots) const;
  // Throws BatchError "unknown_id" with the position of an id that is not in the model.
  Vec<int64_t> find(const IdColumn& ids) const;

  const IndexChoice& index() const { return index_; }
  bool index_lost() const { return index_lost_; }
  void lose_index() { index_lost_ = true; }
  bool index_changed() const { return index_changed_; }  // by the last update, also if it failed
  // Whether the index has been saved, or loaded, since the last update. For an index whose answers
  // depend on its history, a save is part of it.
  bool index_saved() const { return index_saved_; }
  void set_index_saved() { index_saved_ = true; }

  // For a new model that continues from a saved state. The index must hold the points of the table.
  void load(std::shared_ptr<PointTable> table) { set_table(std::move(table)); }
  void load_clock(std::optional<Number> clock) { window_.set_clock(clock); }
  void share_vectors(NeighborIndex& index) const { index.read_vectors_from(table_); }
  void load_index(IndexChoice index) { index_ = std::move(index); }
  // The same, with an index that is empty.
  void build_index(IndexChoice index, Poll* poll);

 private:
  friend class PointUpdate;

  void set_table(std::shared_ptr<PointTable> table) noexcept {
    table_ = std::move(table);
    dimension_ = static_cast<int64_t>(table_->dimension());
  }

  Engine& engine_;
  IdTable& ids_;
  const Similarity& similarity_;
  IndexChooser& chooser_;
  const PointRules rules_;
  Window window_;
  std::shared_ptr<PointTable> table_;  // shared with the index, which may read vectors there
  std::atomic<int64_t> dimension_{-1};
  IndexChoice index_;
  bool index_lost_ = false;
  bool index_changed_ = false;
  bool index_saved_ = false;
  int64_t version_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_POINT_MODEL_H_
