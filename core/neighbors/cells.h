// An approximate index for many vectors, any metric: cells of near vectors, of which a search
// examines the most promising ones.
//
// cell_store.h has the cells, cell_search.h tells which of them a search examines, and reach.h how
// it learns to reach the wanted recall. The codes of all distinct vectors take a quarter of the
// memory of the vectors. Those are read for a few candidates only, where the model keeps them, or
// here if the index is used alone. All distances are exact, and a vector that is held is found.
//
// Cells follow the vectors (cells_balance.cc). One that grows over kMostMembers is divided into
// two, and members of near cells go to a new centre that is nearer. One that falls below
// kFewestMembers is dissolved into others. A centre becomes the mean of its members again when a
// quarter of them have changed. An addition of more vectors than there are makes all cells anew
// (cells_build.cc).
//
// Answers follow from the sequence of updates: not from the number of threads, the processor, or
// whether the index was saved and loaded. For that, cells are saved as they are, and only the codes
// are computed again.

#ifndef DYNHAC_NEIGHBORS_CELLS_H_
#define DYNHAC_NEIGHBORS_CELLS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/neighbors/cell_search.h"
#include "core/neighbors/cell_store.h"
#include "core/neighbors/distinct_vectors.h"
#include "core/neighbors/index.h"
#include "core/neighbors/metric.h"
#include "core/neighbors/reach.h"

namespace dynhac {

class Cells : public NeighborIndex {
 public:
  static constexpr size_t kMostMembers = 512;
  static constexpr size_t kFewestMembers = 64;
  static constexpr size_t kUsualMembers = 256;

  // The dimension must be > 0. Throws std::invalid_argument unless 0 < recall <= 1.
  Cells(Metric metric, size_t dimension, double recall, uint32_t threads,
        const Kernel& kernel = kernels().front());

  size_t dimension() const { return store_.coder().dimension(); }
  size_t size() const override { return vectors_.n_slots(); }
  bool intact() const override { return intact_; }
  size_t memory() const { return vectors_.memory() + store_.memory(); }
  size_t n_cells() const { return store_.n_cells(); }
  double recall() const { return reach_.recall(); }
  // Of the last searches for own vectors that were compared with a scan of all.
  double measured_recall() const { return reach_.measured(); }

  void read_vectors_from(std::shared_ptr<const VectorRows> rows) override;

  // Throw SlotError, std::invalid_argument if a number is not finite, and what `poll` throws. If
  // anything is thrown, `size` tells whether all of the change was made, or nothing.
  void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) override;
  void remove(std::span<const int64_t> slots, Poll* poll) override;
  void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* poll) override;

  // Everything that is saved, but the vectors.
  struct State {
    Vec<int64_t> slots;    // by cell and position, the smallest of each distinct vector; the rest
    Vec<int64_t> sizes;    // of cells
    Vec<int64_t> changes;  // of cells
    Vec<float> centres;    // of cells, a row each
    Vec<double> extents;   // of cells: spread and radius
    Vec<double> centre;    // of the coder
    double unit = 1;
    int64_t additions_left = 0;
    Reach::State reach;
  };
  State state() const;
  // Of an index that is empty. `vectors` has a row for every slot of the state. Throws
  // std::invalid_argument if it is not a state; the index is empty, or not intact, then.
  void load(const State& state, std::span<const float> vectors, Poll* poll);
  // The vectors of slots that are held.
  Vec<float> vectors_of(std::span<const int64_t> slots) const;

  // Throws std::logic_error if an invariant does not hold. Defined with the tests.
  void audit() const;

 private:
  void put_new(size_t first, Poll* poll);
  Vec<uint32_t> places_by_slot() const;
  Coder new_coder(std::span<const uint32_t> places) const;
  void take_samples(size_t changes, Poll* poll);
  size_t needed_reach(const CellSearch& search, uint32_t place, std::span<float> needed) const;

  // cells_build.cc
  CellStore build(Poll* poll) const;
  void choose_centres(CellStore& store, std::span<const uint32_t> places, size_t count,
                      Poll* poll) const;
  Vec<uint32_t> find_cells(const CellStore& store, std::span<const uint32_t> places,
                           Poll* poll) const;

  // cells_balance.cc
  void balance(CellStore& store, Vec<uint32_t>& touched, Poll* poll) const;
  void divide(CellStore& store, uint32_t cell, Vec<uint32_t>& touched) const;
  void dissolve(CellStore& store, uint32_t cell, Vec<uint32_t>& touched) const;
  void draw_near(CellStore& store, uint32_t first, uint32_t second, Vec<uint32_t>& touched) const;
  void improve(CellStore& store, uint32_t cell, std::span<const uint32_t> others,
               Vec<uint32_t>& touched) const;

  DistinctVectors vectors_;
  CellStore store_;
  Reach reach_;
  size_t additions_left_ = 0;  // until the centre of the coder is computed again
  bool intact_ = true;
  mutable Workers workers_;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_CELLS_H_
