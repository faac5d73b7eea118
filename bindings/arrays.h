// Conversion of arrays between Python and the core, and helpers of all bindings.

#ifndef DYNHAC_BINDINGS_ARRAYS_H_
#define DYNHAC_BINDINGS_ARRAYS_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/memory.h"

namespace nb = nanobind;

namespace dynhac {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const In<T>& array) {
  return {array.data(), array.size()};
}

// A contiguous array, seen through the buffer protocol: a small update passes seven of them, and an
// nb::ndarray costs more than half a microsecond each.
template <class T, int Dimensions>
class Array {
 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }

  bool open(PyObject* object) noexcept {
    if (PyObject_GetBuffer(object, &buffer_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    const std::string_view format = buffer_.format == nullptr ? "B" : buffer_.format;
    const bool right = std::is_floating_point_v<T> ? format == (sizeof(T) == 4 ? "f" : "d")
                       : sizeof(T) == 1            ? format == "B"
                                                   : format == "l" || format == "q";
    return right && buffer_.itemsize == sizeof(T) && buffer_.ndim == Dimensions;
  }

  size_t rows() const { return static_cast<size_t>(buffer_.shape[0]); }
  size_t columns() const { return static_cast<size_t>(buffer_.shape[1]); }
  size_t size() const { return static_cast<size_t>(buffer_.len) / sizeof(T); }
  std::span<const T> view() const { return {static_cast<const T*>(buffer_.buf), size()}; }

 private:
  Py_buffer buffer_{};
};

template <class T>
using Column = Array<T, 1>;
template <class T>
using Table = Array<T, 2>;

}  // namespace dynhac

namespace nanobind::detail {

template <class T, int Dimensions>
struct type_caster<dynhac::Array<T, Dimensions>> {
  static constexpr auto Name = const_name("numpy.ndarray");
  template <class>
  using Cast = dynhac::Array<T, Dimensions>&;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    return array.open(source.ptr());
  }
  explicit operator dynhac::Array<T, Dimensions>&() { return array; }

  dynhac::Array<T, Dimensions> array;
};

}  // namespace nanobind::detail

namespace dynhac {

// An uninitialised array, allocated by numpy.
template <class T>
nb::object empty_array(std::initializer_list<size_t> shape) {
  // For the life of the process, like the module.
  static PyObject* const empty =
      nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
  constexpr const char* kName = std::is_floating_point_v<T> ? (sizeof(T) == 4 ? "f4" : "f8") : "i8";
  static PyObject* const dtype = nb::module_::import_("numpy").attr("dtype")(kName).release().ptr();
  static_assert(std::is_floating_point_v<T> || sizeof(T) == 8);
  nb::object lengths = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  if (!lengths.is_valid()) throw nb::python_error();
  Py_ssize_t axis = 0;
  for (const size_t length : shape) {
    PyObject* number = PyLong_FromSize_t(length);
    if (number == nullptr) throw nb::python_error();
    PyTuple_SetItem(lengths.ptr(), axis++, number);
  }
  PyObject* arguments[] = {lengths.ptr(), dtype};
  nb::object array = nb::steal(PyObject_Vectorcall(empty, arguments, 2, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  return array;
}

// The values of such an array; the pointer is valid for as long as the array lives.
template <class T>
T* data_of(const nb::object& array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_SIMPLE | PyBUF_WRITABLE) != 0) {
    throw nb::python_error();
  }
  T* data = static_cast<T*>(buffer.buf);
  PyBuffer_Release(&buffer);
  return data;
}

// A numpy array of the given shape. Small vectors are copied into an array allocated by numpy,
// which is faster; a large array takes over the vector's memory, which costs two more objects.
template <class T>
nb::object to_numpy(Vec<T>&& values, std::initializer_list<size_t> shape) {
  constexpr size_t kSmall = 4096;  // bytes
  if constexpr (sizeof(T) == 8 || std::is_floating_point_v<T>) {
    if (values.size() * sizeof(T) <= kSmall) {
      nb::object array = empty_array<T>(shape);
      std::copy(values.begin(), values.end(), data_of<T>(array));
      return array;
    }
  }
  auto owned = std::make_unique<Vec<T>>(std::move(values));
  T* data = owned->data();
  nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<Vec<T>*>(p); });
  owned.release();
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.begin(), owner));
}

template <class T>
nb::object to_numpy(Vec<T>&& values) {
  const size_t n = values.size();
  return to_numpy(std::move(values), {n});
}

template <class Call>
auto without_gil(Call call) {
  nb::gil_scoped_release release;
  return call();
}

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_ARRAYS_H_
