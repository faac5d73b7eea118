// Class ReentryGuard: guards a model or a watch against re-entry.
//
// An update runs under a lock that its own thread can take again. Code that is called meanwhile, a
// function of the user's or a signal handler, must not start another one: it finds the guard held.

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

#include "bindings/bindings.h"

namespace nb = nanobind;

namespace dynhac {
namespace {

struct ReentryGuard {
  std::string message;  // of the error on entering it while it is held
  bool held = false;
};

}  // namespace

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
      .def("__exit__", [](ReentryGuard& guard, const nb::args&) { guard.held = false; });
}

}  // namespace dynhac
