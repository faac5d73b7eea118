// Function one_vector: a plain vector as a row of float32, the quick way for single points.

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"

namespace dynhac {
namespace {

// Copies an array of float32 or float64 of this length as float32. False for anything else, and if
// a value is not finite or is not 0 and becomes 0.
bool read_vector(nb::handle values, std::span<float> vector) {
  static PyObject* const array_type =
      nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  if (reinterpret_cast<PyObject*>(Py_TYPE(values.ptr())) != array_type) return false;
  Py_buffer buffer;
  if (PyObject_GetBuffer(values.ptr(), &buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  struct Release {
    Py_buffer* buffer;
    ~Release() { PyBuffer_Release(buffer); }
  } release{&buffer};
  const std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  const bool single = format == "f";
  if ((!single && format != "d") || vector.empty() || buffer.ndim != 1 ||
      std::cmp_not_equal(buffer.shape[0], vector.size())) {
    return false;
  }
  const char* at = static_cast<const char*>(buffer.buf);
  bool kept = true;
  if (single && buffer.strides[0] == sizeof(float)) {
    std::memcpy(vector.data(), at, vector.size_bytes());
  } else {
    for (float& entry : vector) {
      if (single) {
        std::memcpy(&entry, at, sizeof entry);
      } else {
        double wide;
        std::memcpy(&wide, at, sizeof wide);
        entry = static_cast<float>(wide);
        kept &= (entry != 0.0F) | (wide == 0.0);
      }
      at += buffer.strides[0];
    }
  }
  for (const float entry : vector) kept &= std::isfinite(entry);
  return kept;
}

nb::object one_vector(nb::handle values, size_t dimension) {
  nb::object row = empty_array<float>({1, dimension});
  return read_vector(values, {data_of<float>(row), dimension}) ? row : nb::none();
}

}  // namespace

void bind_vectors(nb::module_& m) {
  m.def("one_vector", &one_vector, nb::arg("values").none(), nb::arg("dimension"));
}

}  // namespace dynhac
