#include "bindings/busy.h"

#include <stdexcept>

namespace nb = nanobind;

namespace dynhac {

void bind_busy(nb::module_& m) {
  nb::class_<Busy>(m, "Busy")
      .def(
          "__init__", [](Busy* self, const char* message) { new (self) Busy{message}; },
          nb::arg("message"))
      .def_ro("held", &Busy::held)
      .def("__enter__",
           [](Busy& busy) {
             if (busy.held) throw std::runtime_error(busy.message);
             busy.held = true;
           })
      .def(
          "__exit__", [](Busy& busy, nb::handle, nb::handle, nb::handle) { busy.held = false; },
          nb::arg("type").none(), nb::arg("error").none(), nb::arg("traceback").none());
}

}  // namespace dynhac
