// Numbers of Python's as numbers of the core.

#ifndef DYNHAC_BINDINGS_NUMBERS_H_
#define DYNHAC_BINDINGS_NUMBERS_H_

#include <optional>

#include "bindings/bindings.h"
#include "core/base/number.h"

namespace dynhac {

inline std::optional<Number> to_number(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  if (PyFloat_Check(value.ptr())) return Number(PyFloat_AsDouble(value.ptr()));
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) return Number(nb::cast<double>(nb::float_(value)));
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return Number(number);
}

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_NUMBERS_H_
