// Searches in a neighbour index: for an update, and for vectors that are not in the model.

#ifndef DYNHAC_POINTS_POINT_SEARCH_H_
#define DYNHAC_POINTS_POINT_SEARCH_H_

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/neighbors/index.h"
#include "core/points/point_table.h"

namespace dynhac {

// Adds all points of a table to a new index, which may read their vectors there.
void fill(NeighborIndex& index, const std::shared_ptr<const PointTable>& table, Poll* poll);

// What an index answered, in rows: `width` slots with their distances for each vector, -1 where
// nothing was found.
struct SearchResult {
  Buffer<int64_t> slots;
  Buffer<double> distances;
  size_t width = 0;
};

// The k nearest of every vector. Polls now and then; `poll` may be nullptr.
SearchResult search(NeighborIndex& index, std::span<const float> vectors, size_t dimension,
                    size_t k, Poll* poll);

// Sorts every row by distance and then by slot, with what was not found at its end. An index of the
// user's own may answer in any order.
void sort_rows(SearchResult& result);

// The nearest points of vectors that are not in the model, in rows of `width`, nearest first. Row i
// has counts[i] points; keys, distances and similarities after them have no meaning.
struct NearestPoints {
  Vec<int64_t> keys;
  Vec<double> distances, similarities;
  Vec<int64_t> counts;
  size_t width = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_POINT_SEARCH_H_
