// A table of points and the engine of their graph, changed together.

#ifndef DYNHAC_POINTS_POINT_GRAPH_H_
#define DYNHAC_POINTS_POINT_GRAPH_H_

#include <cstdint>
#include <span>

#include "core/hierarchy/engine.h"
#include "core/points/nearest_edges.h"
#include "core/points/point_table.h"

namespace dynhac {

// Lets the points in `leaving` go and the pending ones, under these keys, in, in the engine and in
// the table; the edges are those of the new points and further ones, between slots, in whose place
// there are keys afterwards. All or nothing: throws what Engine::update does, and
// std::invalid_argument or std::out_of_range for slots and keys that are not right.
Change update_points(Engine& engine, PointTable& table, std::span<const int64_t> keys,
                     std::span<const int64_t> leaving, WeightedEdges& edges, Poll* poll);

// Before an update: the slots, ascending, of the points that would lose an edge to one in `leaving`
// and have fewer than `enough` edges left, with `edges` added.
//
// An edge ends with either of its points. Most points have more edges than neighbours they look
// for, since others look for them; but one whose neighbours leave one after the other would end up
// alone. These are the points to join to their nearest anew. Only the neighbourhood of what leaves
// is looked at, and all are judged by the graph before any repair.
Vec<int64_t> short_of_edges(const Engine& engine, const PointTable& table,
                            std::span<const int64_t> leaving, const WeightedEdges& edges,
                            int64_t enough);

}  // namespace dynhac

#endif  // DYNHAC_POINTS_POINT_GRAPH_H_
