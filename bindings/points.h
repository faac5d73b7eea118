// What models of points have compiled: their table, the way of an update, and reading a vector.

#ifndef DYNHAC_BINDINGS_POINTS_H_
#define DYNHAC_BINDINGS_POINTS_H_

#include <nanobind/nanobind.h>

#include <optional>
#include <span>
#include <utility>

#include "core/base/memory.h"
#include "core/points/point_table.h"

namespace dynhac {

void bind_points(nanobind::module_& m);         // the table, similarities
void bind_point_updater(nanobind::module_& m);  // needs them, and the engine

// The value of an int that fits, and nothing else.
std::optional<int64_t> to_int64(nanobind::handle value);

// Timestamps in an array of int64 or float64, or None.
std::pair<Times, Vec<int64_t>> orders_of(nanobind::handle times);
// One time, an int or a float as the table has them; none for anything else.
std::optional<int64_t> order_in(const PointTable& table, nanobind::handle time);

// Copies one plain vector, an array of float32 or float64, that is finite and as long as this.
// False for anything else.
bool read_vector(nanobind::handle values, std::span<float> vector);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_POINTS_H_
