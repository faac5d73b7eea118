// Numbers of the core from and to those of Python.

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

inline nb::object to_python(const std::optional<Number>& number) {
  if (!number) return nb::none();
  if (const double* value = std::get_if<double>(&*number)) return nb::float_(*value);
  return nb::int_(std::get<int64_t>(*number));
}

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_NUMBERS_H_
