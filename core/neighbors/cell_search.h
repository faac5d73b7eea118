// Searches for the nearest vectors in cells, the most promising cells first.
//
// Let d be the distance of a query from the centre of a cell, and r the root mean square of the
// distances of its members from there. A member x has the squared distance
//
//   |q - x|^2 = d^2 + |x - c|^2 - 2 d |x - c| cos(a),   a: the angle between q - c and x - c
//
// In many dimensions nearly all of these cosines are small. So a cell is expected to have no vector
// nearer than
//
//   d^2 + r^2 - 2 d r reach
//
// where the *reach* is a cosine that is learned (see reach.h). For inner products, <q, x> is
// expected to be at most <q, c> + |q| r reach. A search examines cells by ascending expectations,
// until that of the next one is not below what the k-th nearest so far has. It does so in rounds of
// 2, 2, 4, 8, ... cells: which cells a round has is decided before it. So the answer does not
// depend on which queries are searched for together, and cells are read once for several queries.
//
// An exact search examines all cells but those of which the triangle inequality proves that they
// have nothing nearer: no member is farther from its centre than the radius of the cell, so that
// |q - x| >= d - radius; and <q, x> <= <q, c> + |q| radius.
//
// If the query is a vector that is held, the cell that has it is examined first: it is always
// found.

#ifndef DYNHAC_NEIGHBORS_CELL_SEARCH_H_
#define DYNHAC_NEIGHBORS_CELL_SEARCH_H_

#include <cstdint>
#include <span>

#include "core/base/memory.h"
#include "core/neighbors/candidates.h"
#include "core/neighbors/cell_store.h"

namespace dynhac {

// Queries, and where their answers go: k for each.
struct SearchRows {
  std::span<const float> vectors;
  size_t k;
  std::span<int64_t> slots;
  std::span<double> distances;
};

class CellSearch {
 public:
  // All of it must stay as it is while it is used.
  CellSearch(const CellStore& store, const DistinctVectors& vectors, bool exact);

  // How many rows to search for at a time.
  size_t rows_at_once() const;
  // Threads may search at the same time. An exact search ignores the reach.
  void search(const SearchRows& rows, double reach) const;
  // The same, by a scan of all cells.
  void scan_all(const SearchRows& rows) const;

  // The largest reach that may be needed to find the vectors of some places, which are not farther
  // than `distance`: their cells are expected to have something as near as that.
  double most_reach(std::span<const float> query, double distance,
                    std::span<const uint32_t> places) const;

 private:
  struct Work;  // in cell_search.cc

  void expect(Work& work, double reach) const;
  void choose_first(Work& work) const;
  bool choose_next(Work& work, size_t count) const;
  void examine(Work& work) const;
  void scan_cell(Work& work, size_t cell, std::span<const uint32_t> rows) const;
  void answer(Work& work, const SearchRows& rows) const;

  const CellStore& store_;
  const DistinctVectors& vectors_;
  bool exact_;
  Vec<float> radii_;  // by cell: of an exact search the radius, else the root mean square
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_CELL_SEARCH_H_
