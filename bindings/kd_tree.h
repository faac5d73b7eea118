// dynhac._core.KdTree.

#ifndef DYNHAC_BINDINGS_KD_TREE_H_
#define DYNHAC_BINDINGS_KD_TREE_H_

#include <nanobind/nanobind.h>

namespace dynhac {

void bind_kd_tree(nanobind::module_& m);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_KD_TREE_H_
