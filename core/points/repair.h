// Which points deletions leave with few edges.
//
// An edge ends with either of its points. Most points have more edges than neighbours they search
// for, since others find them; but a point whose neighbours leave one after the other would end up
// alone. Such points are joined to their nearest neighbours anew.

#ifndef DYNHAC_POINTS_REPAIR_H_
#define DYNHAC_POINTS_REPAIR_H_

#include <cstdint>
#include <span>

#include "core/hierarchy/engine.h"
#include "core/points/nearest_edges.h"
#include "core/points/point_table.h"

namespace dynhac {

// Before an update: the slots, ascending, of the points that would lose an edge to one in `leaving`
// and have fewer than `enough` edges left, with `edges` (between slots) added. Only the neighbours
// of the points that leave are looked at, and all are judged by the graph before any repair.
Vec<int64_t> points_to_repair(const Engine& engine, const PointTable& table,
                              std::span<const int64_t> leaving, const WeightedEdges& edges,
                              int64_t enough);

}  // namespace dynhac

#endif  // DYNHAC_POINTS_REPAIR_H_
