// Class KdTree: the native index for few dimensions.

#include "core/neighbors/kd_tree.h"

#include "bindings/bindings.h"
#include "bindings/native_index.h"

namespace dynhac {

void bind_kd_tree(nb::module_& m) {
  nb::class_<SharedIndex<KdTree>, NeighborIndex> type(m, "KdTree");
  type.def(nb::init<int64_t>(), nb::arg("dimension"));
  native_index::bind(type);
}

}  // namespace dynhac
