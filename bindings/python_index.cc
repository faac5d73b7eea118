#include "bindings/python_index.h"

#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"

namespace dynhac {
namespace {

// For one call of an index that does not tell how many suit it, in an attribute `rows_at_once`.
// Progress is reported between calls.
constexpr size_t kRowsAtOnce = 1024;
constexpr size_t kFoundAtOnce = size_t{1} << 20;

size_t rows_at_once(nb::handle index) {
  if (!nb::hasattr(index, "rows_at_once")) return kRowsAtOnce;
  return std::max<size_t>(nb::cast<size_t>(index.attr("rows_at_once")), 1);
}

// NumPy's memory: a large array of it has huge pages, and the next one of that size may be in the
// same place.
template <class T>
nb::object array_of(std::span<const T> values, std::initializer_list<size_t> shape) {
  nb::object array = empty_array<T>(shape);
  std::ranges::copy(values, data_of<T>(array));
  return array;
}

nb::object name_to_python(const std::string& name) {
  return name.empty() ? nb::none() : nb::object(nb::str(name.data(), name.size()));
}

// Lets the garbage collector see the index, which may refer to its model.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PythonIndex>(self)->object().ptr());
  return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {0, nullptr}};

}  // namespace

PythonIndex::PythonIndex(nb::object index, bool checks_itself)
    : index_(std::move(index)),
      checks_itself_(checks_itself),
      rows_at_once_(rows_at_once(index_)) {}

PythonIndex::~PythonIndex() {
  const nb::gil_scoped_acquire gil;
  index_.reset();
}

size_t PythonIndex::size() const {
  const nb::gil_scoped_acquire gil;
  return nb::len(index_);
}

template <class... Arrays>
void PythonIndex::change(const char* method, const Arrays&... arrays) {
  nb::object call = index_.attr(method);
  try {
    intact_ = false;
    call(arrays...);
    intact_ = true;
  } catch (nb::python_error&) {
    if (checks_itself_) intact_ = nb::cast<bool>(index_.attr("intact"));
    throw;
  }
}

// In parts, so that there is progress to report. An index of the user's own gets all at once: it
// may adapt to what it is given first, and an addition must be made completely or not at all.
void PythonIndex::add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) {
  if (slots.empty()) return;
  const size_t step = checks_itself_ ? slots.size() : std::min(slots.size(), rows_at_once_);
  const size_t dimension = vectors.size() / slots.size();
  for (size_t begin = 0; begin < slots.size(); begin += step) {
    const size_t rows = std::min(step, slots.size() - begin);
    {
      const nb::gil_scoped_acquire gil;
      change("add", array_of(slots.subspan(begin, rows), {rows}),
             array_of(vectors.subspan(begin * dimension, rows * dimension), {rows, dimension}));
    }
    if (poll == nullptr || step == slots.size()) continue;
    intact_ = false;
    poll->advance(rows);
    intact_ = true;
  }
}

void PythonIndex::remove(std::span<const int64_t> slots, Poll* /*poll*/) {
  const nb::gil_scoped_acquire gil;
  change("remove", array_of(slots, {slots.size()}));
}

void PythonIndex::query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
                        std::span<double> distances, Poll* poll) {
  if (slots.empty()) return;
  const size_t rows = slots.size() / k, dimension = vectors.size() / rows;
  const size_t step = std::clamp<size_t>(kFoundAtOnce / k, 1, rows_at_once_);
  for (size_t begin = 0; begin < rows; begin += step) {
    const size_t count = std::min(step, rows - begin);
    query_rows(vectors.subspan(begin * dimension, count * dimension), k,
               slots.subspan(begin * k, count * k), distances.subspan(begin * k, count * k));
    if (poll != nullptr && rows > 1) poll->advance(count);
  }
}

void PythonIndex::query_rows(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
                             std::span<double> distances) {
  const nb::gil_scoped_acquire gil;
  const size_t rows = slots.size() / k;
  nb::object answer = index_.attr("query")(array_of(vectors, {rows, vectors.size() / rows}), k);
  Table<int64_t> found;
  Table<double> lengths;
  nb::object found_array = answer[0], lengths_array = answer[1];
  if (!found.open(found_array.ptr()) || !lengths.open(lengths_array.ptr()) ||
      found.size() != slots.size() || lengths.size() != slots.size()) {
    throw std::invalid_argument("the index did not return arrays of int64 and float64 of its rows");
  }
  std::ranges::copy(found.view(), slots.begin());
  std::ranges::copy(lengths.view(), distances.begin());
}

IndexChoice PythonIndexChooser::choose(size_t dimension, size_t n_points, const std::string& before,
                                       bool outgrown) {
  const nb::gil_scoped_acquire gil;
  return to_index_choice(choose_(dimension, n_points, name_to_python(before), outgrown));
}

IndexChoice to_index_choice(nb::handle tuple) {
  IndexChoice choice;
  if (!tuple[0].is_none()) choice.index = nb::cast<std::shared_ptr<NeighborIndex>>(tuple[0]);
  if (!tuple[1].is_none()) choice.name = nb::cast<const char*>(tuple[1]);
  choice.max_points = nb::cast<int64_t>(tuple[2]);
  return choice;
}

void bind_python_index(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const SlotError& e) {
      PyErr_SetString(PyExc_KeyError, e.what());
    }
  });
  nb::class_<NeighborIndex>(m, "NeighborIndex");
  nb::class_<PythonIndex, NeighborIndex>(m, "PythonIndex", nb::type_slots(slots))
      .def(nb::init<nb::object, bool>(), nb::arg("index"), nb::arg("checks_itself"))
      .def_prop_ro("object", &PythonIndex::object);
}

}  // namespace dynhac
