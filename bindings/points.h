// What models of points have compiled: their table, the way of an update, and reading a vector.

#ifndef DYNHAC_BINDINGS_POINTS_H_
#define DYNHAC_BINDINGS_POINTS_H_

#include <nanobind/nanobind.h>

#include "core/memory.h"

namespace dynhac {

void bind_points(nanobind::module_& m);         // the table, similarities
void bind_point_updater(nanobind::module_& m);  // needs them, and the engine

// A copy of one plain vector, an array of float32 or float64, that is finite; empty for anything
// else.
Vec<float> read_vector(nanobind::handle values, size_t dimension);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_POINTS_H_
