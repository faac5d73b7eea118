#include "bindings/ids.h"

#include <stdexcept>
#include <utility>

#include "bindings/arrays.h"

namespace dynhac {

Texts to_texts(nb::handle list) {
  Texts texts;
  if (!PyList_Check(list.ptr())) {
    if (nb::len(list) == 0) return texts;  // an empty column has no kind
    throw std::invalid_argument("ids must be a list of str");
  }
  const auto count = static_cast<size_t>(PyList_Size(list.ptr()));
  texts.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* text = PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(i));
    Py_ssize_t length = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text, &length)) {
      texts.push_back({bytes, static_cast<size_t>(length)});
      continue;
    }
    PyErr_Clear();
    nb::object encoded = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
    if (!encoded.is_valid()) throw nb::python_error();
    texts.push_back(
        {PyBytes_AsString(encoded.ptr()), static_cast<size_t>(PyBytes_Size(encoded.ptr()))});
  }
  return texts;
}

nb::object to_python(const Texts& texts) {
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(texts.size())));
  if (!list.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    PyObject* decoded =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
    if (decoded == nullptr) throw nb::python_error();
    PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), decoded);
  }
  return list;
}

IdColumn to_ids(nb::handle column) {
  IdColumn ids;
  if (PyTuple_Check(column.ptr())) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(column.ptr()); ++i) {
      ids.ints.push_back(PyLong_AsLongLong(PyTuple_GetItem(column.ptr(), i)));
      if (ids.ints.back() == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    }
    return ids;
  }
  ids.text = PyList_Check(column.ptr());
  if (ids.text) {
    ids.texts = to_texts(column);
    return ids;
  }
  Column<int64_t> ints;
  if (!ints.open(column.ptr())) throw std::invalid_argument("ids");
  ids.ints.assign(ints.view().begin(), ints.view().end());
  return ids;
}

nb::object to_python(IdColumn&& column) {
  return column.text ? to_python(column.texts) : to_numpy(std::move(column.ints));
}

}  // namespace dynhac
