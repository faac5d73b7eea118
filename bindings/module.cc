// dynhac._core: the classes and functions that the core has for Python.

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "bindings/ids.h"
#include "core/base/memory.h"
#include "core/hierarchy/engine.h"
#include "core/hierarchy/last_level.h"
#include "core/points/point_model.h"

namespace nb = nanobind;

namespace dynhac {

nb::handle named_tuple(const char* name, std::initializer_list<const char*> fields,
                       nb::module_& m) {
  nb::list names;
  for (const char* field : fields) names.append(field);
  nb::object type = nb::module_::import_("collections").attr("namedtuple")(name, names);
  type.attr("__module__") = m.attr("__name__");
  m.attr(name) = type;
  return type.release();  // for the life of the process, like the module
}

namespace {

void set_up_exceptions(nb::module_& m) {
  static PyObject* batch_error = PyErr_NewException("dynhac._core.BatchError", nullptr, nullptr);
  m.attr("BatchError") = nb::borrow(batch_error);
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (EdgeError& e) {
      nb::object ends = to_python(std::move(e.ends));
      PyErr_SetObject(batch_error, nb::make_tuple(e.kind, e.index, e.other, ends, e.weight).ptr());
    } catch (const BatchError& e) {
      PyErr_SetObject(batch_error, nb::make_tuple(e.kind, e.index, e.other).ptr());
    }
  });
}

}  // namespace
}  // namespace dynhac

NB_MODULE(_core, m) {
  using namespace dynhac;
  m.doc() = "The compiled engine of dynhac.";
  // A thread may still hold a model when the process ends; that is no leak.
  nb::set_leak_warnings(false);
  set_up_exceptions(m);
  bind_meter(m);
  bind_change(m);
  bind_watch_step(m);
  bind_state_columns(m);
  bind_id_table(m);
  bind_engine(m);
  bind_check(m);
  bind_python_index(m);
  bind_kd_tree(m);
  bind_scan(m);
  bind_cells(m);
  bind_reentry_guard(m);
  bind_selection(m);
  bind_similarity(m);
  bind_subgraph(m);
  bind_point_model(m);
  bind_vectors(m);
  m.def("fail_allocation", &fail_allocation, nb::arg("after"));
  m.def(
      "bound_levels",
      [](uint64_t most, uint64_t spare) {
        internal::most_vertices = most;
        internal::spare_vertices = spare;
      },
      nb::arg("most") = internal::most_vertices.load(),
      nb::arg("spare") = internal::spare_vertices.load());
}
