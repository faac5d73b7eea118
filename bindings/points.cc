#include "bindings/points.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "core/point_table.h"
#include "core/similarity.h"

namespace dynhac {
namespace {

template <class T>
Vec<T> copy_of(const Column<T>& column) {
  return {column.view().begin(), column.view().end()};
}

void construct_similarity(Similarity* self, const char* name, double sigma) {
  using Rule = Similarity::Rule;
  for (const auto& [known, rule] : {std::pair<std::string_view, Rule>{"inverse", Rule::kInverse},
                                    {"gaussian", Rule::kGaussian},
                                    {"cosine", Rule::kCosine},
                                    {"dot", Rule::kDot}}) {
    if (known == name) {
      new (self) Similarity{rule, sigma};
      return;
    }
  }
  throw std::invalid_argument("no similarity has this name");
}

nb::object similarities(const Similarity& similarity, const Column<double>& distances) {
  Vec<double> found = copy_of(distances);
  for (double& value : found) value = similarity(value);
  return to_numpy(std::move(found));
}

void construct_table(PointTable* self, int64_t dimension) {
  if (dimension < 0) throw std::invalid_argument("dimension");
  new (self) PointTable(static_cast<size_t>(dimension));
}

PointTable* load_table(const Column<int64_t>& keys, const Column<int64_t>& arrival,
                       const Table<float>& vectors, int64_t next_arrival, int64_t next_id) {
  if (vectors.rows() != keys.size()) throw std::invalid_argument("vectors and keys");
  PointTable::State state{copy_of(keys),
                          copy_of(arrival),
                          {vectors.view().begin(), vectors.view().end()},
                          next_arrival,
                          next_id};
  return new PointTable(vectors.columns(), std::move(state));
}

nb::object save_table(const PointTable& table) {
  PointTable::State state = table.state();
  return nb::make_tuple(to_numpy(std::move(state.keys)), to_numpy(std::move(state.arrival)),
                        to_numpy(std::move(state.vectors), {table.top(), table.dimension()}));
}

nb::object arrivals_of(const PointTable& table, const Column<int64_t>& slots) {
  Vec<int64_t> arrivals;
  arrivals.reserve(slots.size());
  for (const int64_t slot : slots.view()) arrivals.push_back(table.arrival(slot));
  return to_numpy(std::move(arrivals));
}

nb::object vectors_of(const PointTable& table, const Column<int64_t>& slots) {
  return to_numpy(table.vectors_of(slots.view()), {slots.size(), table.dimension()});
}

}  // namespace

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
      }
      at += buffer.strides[0];
    }
  }
  bool finite = true;
  for (const float entry : vector) finite &= std::isfinite(entry);
  return finite;
}

void bind_points(nb::module_& m) {
  m.def(
      "one_vector",
      [](nb::handle values, size_t dimension) -> nb::object {
        nb::object row = empty_array<float>({1, dimension});
        const bool read = read_vector(values, {data_of<float>(row), dimension});
        return read ? row : nb::none();
      },
      nb::arg("values").none(), nb::arg("dimension"));

  nb::class_<Similarity>(m, "SimilarityRule")
      .def("__init__", &construct_similarity, nb::arg("name"), nb::arg("sigma"))
      .def("__call__", &similarities, nb::arg("distances"));

  nb::class_<PointTable>(m, "PointTable")
      .def("__init__", &construct_table, nb::arg("dimension"))
      .def_static("load", &load_table, nb::arg("keys"), nb::arg("arrival"), nb::arg("vectors"),
                  nb::arg("next_arrival"), nb::arg("next_id"), nb::rv_policy::take_ownership)
      .def("save", &save_table)
      .def("__len__", &PointTable::size)
      .def_prop_ro("dimension", &PointTable::dimension)
      .def_prop_ro("top", &PointTable::top)
      .def_prop_ro("version", &PointTable::version)
      .def_prop_ro("next_arrival", &PointTable::next_arrival)
      .def_prop_ro("next_id", &PointTable::next_id)
      .def_prop_ro("nbytes", &PointTable::bytes)
      .def("used", [](const PointTable& t) { return to_numpy(t.used()); })
      .def("in_order", [](const PointTable& t) { return to_numpy(t.in_order()); })
      .def(
          "oldest",
          [](PointTable& t, size_t count, const Column<int64_t>& but) {
            return to_numpy(t.oldest(count, but.view()));
          },
          nb::arg("count"), nb::arg("but"))
      .def("arrival", &PointTable::arrival, nb::arg("slot"))
      .def("arrivals_of", &arrivals_of, nb::arg("slots"))
      .def(
          "keys_of",
          [](const PointTable& t, const Column<int64_t>& slots) {
            return to_numpy(t.keys_of(slots.view()));
          },
          nb::arg("slots"))
      .def("vectors_of", &vectors_of, nb::arg("slots"))
      .def(
          "find",
          [](const PointTable& t, const Column<int64_t>& keys) {
            return to_numpy(t.find(keys.view()));
          },
          nb::arg("keys"))
      .def("give_back", &PointTable::give_back);
}

}  // namespace dynhac
