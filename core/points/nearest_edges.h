// Edges from the answers of a neighbour index: every pair of points once.
//
// An index answers in rows: `width` slots with their distances for each point that was searched
// for, -1 where nothing was found. A point may find itself, and two points that were both searched
// for may find each other; no row has a slot twice.

#ifndef DYNHAC_POINTS_NEAREST_EDGES_H_
#define DYNHAC_POINTS_NEAREST_EDGES_H_

#include <cstdint>
#include <span>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/points/similarity.h"

namespace dynhac {

struct FoundRows {
  std::span<const int64_t> own;  // the slots searched for, no two of them equal
  std::span<const int64_t> found;
  std::span<const double> distances;
  size_t width;
};

struct NearestEdges {
  Buffer<int64_t> u, v;  // u is the slot searched for
  Buffer<double> distances;
};

// Edges from every slot searched for to the first `most` other slots in its row, in that order,
// without those that an earlier row has from the other end. Throws std::invalid_argument if lengths
// do not fit or a slot searched for is negative. Takes time in proportion to the rows times their
// width, on up to `threads` threads.
NearestEdges nearest_edges(const FoundRows& rows, size_t most, Poll* poll = nullptr,
                           uint32_t threads = 1);

// Two sets of rows in one, as wide as the wider one.
struct JoinedRows {
  JoinedRows(const FoundRows& first, const FoundRows& second);  // of other slots
  FoundRows view() const { return {own, found, distances, width}; }

  Vec<int64_t> own, found;
  Vec<double> distances;
  size_t width;
};

struct WeightedEdges {
  Buffer<int64_t> u, v;
  Buffer<double> weights;
};

// Edges with similarities as weights, without those that weigh less than `least`; on up to
// `threads` threads.
WeightedEdges weighted(NearestEdges edges, const Similarity& similarity, double least,
                       uint32_t threads = 1);

}  // namespace dynhac

#endif  // DYNHAC_POINTS_NEAREST_EDGES_H_
