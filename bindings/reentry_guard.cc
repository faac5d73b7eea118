#include "bindings/reentry_guard.h"

#include <nanobind/nanobind.h>

#include <stdexcept>

#include "bindings/bindings.h"

namespace nb = nanobind;

namespace dynhac {

void bind_reentry_guard(nb::module_& m) {
  nb::class_<ReentryGuard>(m, "ReentryGuard")
      .def(
          "__init__",
          [](ReentryGuard* self, const char* message) { new (self) ReentryGuard{message}; },
          nb::arg("message"))
      .def_ro("held", &ReentryGuard::held)
      .def("__enter__",
           [](ReentryGuard& guard) {
             if (guard.held) throw std::runtime_error(guard.message);
             guard.held = true;
           })
      .def(
          "__exit__",
          [](ReentryGuard& guard, nb::handle, nb::handle, nb::handle) { guard.held = false; },
          nb::arg("type").none(), nb::arg("error").none(), nb::arg("traceback").none());
}

}  // namespace dynhac
