// Handles signals such as Ctrl-C during long computations, up to 20 times a second.

#ifndef DYNHAC_BINDINGS_POLL_H_
#define DYNHAC_BINDINGS_POLL_H_

#include <nanobind/nanobind.h>

#include <chrono>

#include "core/hierarchy/engine.h"

namespace dynhac {

class SignalPoll : public Poll {
 public:
  void check() override {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_POLL_H_
