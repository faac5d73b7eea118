// Edges out of what a neighbour index has found: every pair once.
//
// An index answers in rows: `width` slots with their distances for each point asked for, -1 where
// nothing was found. A point may find itself, and two points that were both asked for may find each
// other; no row has a slot twice.

#ifndef DYNHAC_POINTS_NEAREST_EDGES_H_
#define DYNHAC_POINTS_NEAREST_EDGES_H_

#include <cstdint>
#include <span>

#include "core/base/memory.h"
#include "core/points/similarity.h"

namespace dynhac {

struct FoundRows {
  std::span<const int64_t> own;  // the slots asked for, no two of them equal
  std::span<const int64_t> found;
  std::span<const double> distances;
  size_t width;
};

struct NearestEdges {
  Vec<int64_t> u, v;  // u is the slot asked for
  Vec<double> distances;
};

// From every slot asked for to the first `most` others in its row, in that order, without those
// that an earlier row has from the other end. Throws std::invalid_argument if lengths do not fit or
// a slot asked for is negative. Takes time and memory in proportion to the rows, or sorts them
// where their slots are few among many.
NearestEdges nearest_edges(const FoundRows& rows, size_t most);

// Rows below each other, as wide as the wider ones.
struct JoinedRows {
  JoinedRows(const FoundRows& first, const FoundRows& second);  // of different slots
  FoundRows view() const { return {own, found, distances, width}; }

  Vec<int64_t> own, found;
  Vec<double> distances;
  size_t width;
};

struct WeightedEdges {
  Vec<int64_t> u, v;
  Vec<double> weights;
};

// Edges with similarities for weights, without those that weigh less than `least`; the second with
// similarities given, one for every edge.
WeightedEdges weighted(NearestEdges edges, const Similarity& similarity, double least);
WeightedEdges weighted(Vec<int64_t> u, Vec<int64_t> v, Vec<double> weights, double least);

}  // namespace dynhac

#endif  // DYNHAC_POINTS_NEAREST_EDGES_H_
