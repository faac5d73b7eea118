// What models of points have compiled: their table, the way of an update, and reading a vector.

#ifndef DYNHAC_BINDINGS_POINTS_H_
#define DYNHAC_BINDINGS_POINTS_H_

#include <nanobind/nanobind.h>

#include <span>

namespace dynhac {

void bind_points(nanobind::module_& m);         // the table, similarities
void bind_point_updater(nanobind::module_& m);  // needs them, and the engine

// Copies one plain vector, an array of float32 or float64, that is finite and as long as this.
// False for anything else.
bool read_vector(nanobind::handle values, std::span<float> vector);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_POINTS_H_
