// One update of a PointModel, step by step.
//
//   ids      deletions by id become slots; the ids of new points are checked and get keys
//   window   the points that expire leave too; new ones that expire at once are dropped
//   slots    the new points that stay get slots in the table
//   search   the neighbour index changes, and finds the neighbours of the new points
//   repair   and of the points that are left with few edges
//   engine   takes vertices and edges: the point of no return
//   commit   table, ids, window and index follow; nothing of it can fail
//
// Everything before the commit goes through the journal, which undoes it if a step throws.

#ifndef DYNHAC_POINTS_POINT_UPDATE_H_
#define DYNHAC_POINTS_POINT_UPDATE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/points/journal.h"
#include "core/points/nearest_edges.h"
#include "core/points/point_model.h"

namespace dynhac {

class PointUpdate {
 public:
  PointUpdate(PointModel& model, const PointBatch& batch, Poll* poll);
  PointChange run();

 private:
  using Clock = std::chrono::steady_clock;

  // The k nearest of every slot searched for.
  struct Answer {
    std::span<const int64_t> own;
    SearchResult result;
    FoundRows rows() const { return {own, result.slots, result.distances, result.width}; }
  };

  void find_deleted();
  void take_new_ids();
  void let_expire();
  void drop(const Vec<bool>& dropped);
  void reserve_slots();
  void choose_index();
  void search();
  WeightedEdges edges_of(const FoundRows& rows) const;
  void repair(const Answer& answer);
  void spread_equals(Answer& answer);
  Answer ask(std::span<const int64_t> own, std::span<const float> vectors, size_t k);
  Change apply();
  void commit() noexcept;

  size_t n_points() const;  // after the update

  PointModel& model_;
  const PointBatch& batch_;
  Poll* const poll_;
  const Clock::time_point start_ = Clock::now();

  // For the first points of a model the table is new, and kept if the update is made.
  const std::shared_ptr<PointTable> shared_table_;
  PointTable& table_;
  const bool text_;          // whether ids are texts
  const size_t new_points_;  // in the batch
  Window window_;            // after the update
  NeighborIndex* index_ = nullptr;
  std::optional<IndexChoice> new_index_;  // if the model gets another one

  Vec<int64_t> leaving_;           // slots: deleted, then expired
  Vec<int64_t> keys_;              // of the new points, without those dropped
  Vec<int64_t> gone_;              // keys that the engine may not hold afterwards; of text ids only
  Vec<int64_t> arrivals_, times_;  // of the new points that stay
  std::span<const float> vectors_;  // of the new points that stay
  Vec<float> vectors_kept_;         // if others are dropped
  Vec<int64_t> slots_;              // of the new points that stay
  WeightedEdges edges_;             // between slots
  PointChange change_;
  Journal journal_;  // last: what it undoes refers to the members above
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_POINT_UPDATE_H_
