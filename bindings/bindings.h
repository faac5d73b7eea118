// What each file of bindings adds to the module. A class is bound after those that its bindings
// use.

#ifndef DYNHAC_BINDINGS_BINDINGS_H_
#define DYNHAC_BINDINGS_BINDINGS_H_

#include <nanobind/nanobind.h>

#include <initializer_list>

namespace dynhac {

void bind_cells(nanobind::module_& m);
void bind_change(nanobind::module_& m);
void bind_check(nanobind::module_& m);
void bind_engine(nanobind::module_& m);
void bind_id_table(nanobind::module_& m);
void bind_kd_tree(nanobind::module_& m);
void bind_meter(nanobind::module_& m);
void bind_point_model(nanobind::module_& m);
void bind_python_index(nanobind::module_& m);
void bind_reentry_guard(nanobind::module_& m);
void bind_scan(nanobind::module_& m);
void bind_selection(nanobind::module_& m);
void bind_similarity(nanobind::module_& m);
void bind_state_columns(nanobind::module_& m);
void bind_subgraph(nanobind::module_& m);
void bind_vectors(nanobind::module_& m);
void bind_watch_step(nanobind::module_& m);

// Adds a collections.namedtuple to the module. It lives as long as the process.
nanobind::handle named_tuple(const char* name, std::initializer_list<const char*> fields,
                             nanobind::module_& m);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_BINDINGS_H_
