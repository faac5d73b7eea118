// What models of points have compiled: their table, edges to neighbours, and reading a vector.

#ifndef DYNHAC_BINDINGS_POINTS_H_
#define DYNHAC_BINDINGS_POINTS_H_

#include <nanobind/nanobind.h>

namespace dynhac {

void bind_points(nanobind::module_& m);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_POINTS_H_
