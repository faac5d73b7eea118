#include "bindings/points.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/poll.h"
#include "core/nearest_edges.h"
#include "core/point_graph.h"
#include "core/point_table.h"
#include "core/similarity.h"

namespace dynhac {
namespace {

// What is done before another thread could get the GIL.
constexpr size_t kQuick = 10'000;

template <class Call>
auto run(size_t entries, Call call) {
  return entries <= kQuick ? call() : without_gil(call);
}

template <class T>
Vec<T> copy_of(const Column<T>& column) {
  return {column.view().begin(), column.view().end()};
}

// --- reading a vector ---------------------------------------------------------------------------

// The way of one plain vector, float32 or float64, that has nothing wrong with it: a copy as a
// table of one row. None for anything else.
nb::object one_vector(nb::handle values, nb::handle array_type, int64_t dimension) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(values.ptr())) != array_type.ptr()) return nb::none();
  Py_buffer buffer;
  if (PyObject_GetBuffer(values.ptr(), &buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return nb::none();
  }
  struct Release {
    Py_buffer* buffer;
    ~Release() { PyBuffer_Release(buffer); }
  } release{&buffer};
  const std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  const bool single = format == "f";
  if ((!single && format != "d") || buffer.ndim != 1 || buffer.shape[0] != dimension) {
    return nb::none();
  }
  Vec<float> row(static_cast<size_t>(dimension));
  const char* at = static_cast<const char*>(buffer.buf);
  bool finite = true;
  for (float& entry : row) {
    if (single) {
      std::memcpy(&entry, at, sizeof entry);
    } else {
      double wide;
      std::memcpy(&wide, at, sizeof wide);
      entry = static_cast<float>(wide);
    }
    finite &= std::isfinite(entry);
    at += buffer.strides[0];
  }
  if (!finite) return nb::none();
  const size_t columns = row.size();
  return to_numpy(std::move(row), {1, columns});
}

// --- edges --------------------------------------------------------------------------------------

FoundRows rows_of(const Column<int64_t>& own, const Table<int64_t>& found,
                  const Table<double>& distances, int64_t most) {
  if (most < 0) throw std::invalid_argument("most is negative");
  if (found.rows() != own.size()) throw std::invalid_argument("found needs a row for every slot");
  return {own.view(), found.view(), distances.view(), found.columns()};
}

nb::object nearest_edges_of(const Column<int64_t>& own, const Table<int64_t>& found,
                            const Table<double>& distances, int64_t most) {
  const FoundRows rows = rows_of(own, found, distances, most);
  NearestEdges edges =
      run(found.size(), [&] { return nearest_edges(rows, static_cast<size_t>(most)); });
  return nb::make_tuple(to_numpy(std::move(edges.u)), to_numpy(std::move(edges.v)),
                        to_numpy(std::move(edges.distances)));
}

WeightedEdges weighted_edges(const Column<int64_t>& own, const Table<int64_t>& found,
                             const Table<double>& distances, int64_t most,
                             const Similarity& similarity, double least) {
  const FoundRows rows = rows_of(own, found, distances, most);
  return run(found.size(), [&] {
    return weighted(nearest_edges(rows, static_cast<size_t>(most)), similarity, least);
  });
}

void construct_edges(WeightedEdges* self, const Column<int64_t>& u, const Column<int64_t>& v,
                     const Column<double>& weights, double least) {
  new (self) WeightedEdges(weighted(copy_of(u), copy_of(v), copy_of(weights), least));
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
  run(found.size(), [&] {
    for (double& value : found) value = similarity(value);
  });
  return to_numpy(std::move(found));
}

// --- the table ----------------------------------------------------------------------------------

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

nb::object reserve(PointTable& table, const Table<float>& vectors, const Column<int64_t>& arrivals,
                   int64_t next_arrival, int64_t next_id) {
  if (vectors.columns() != table.dimension()) throw std::invalid_argument("dimension");
  const PointTable::NewPoints points{vectors.view(), arrivals.view(), next_arrival, next_id};
  return to_numpy(run(vectors.size(), [&] { return table.reserve(points); }));
}

SlotEdges slots_of(const WeightedEdges* edges) {
  if (edges == nullptr) return {};
  return {edges->u, edges->v, edges->weights};
}

Change update(PointTable& table, Engine& engine, const Column<int64_t>& keys,
              const Column<int64_t>& leaving, const WeightedEdges* edges) {
  SignalPoll poll;
  return without_gil([&] {
    return update_points(engine, table, keys.view(), leaving.view(), slots_of(edges), &poll);
  });
}

nb::object few_edges(const PointTable& table, const Engine& engine, const Column<int64_t>& leaving,
                     const WeightedEdges* edges, int64_t enough) {
  return to_numpy(without_gil(
      [&] { return short_of_edges(engine, table, leaving.view(), slots_of(edges), enough); }));
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

void bind_points(nb::module_& m) {
  m.def("one_vector", &one_vector, nb::arg("values"), nb::arg("array_type"), nb::arg("dimension"));

  nb::class_<Similarity>(m, "SimilarityRule")
      .def("__init__", &construct_similarity, nb::arg("name"), nb::arg("sigma"))
      .def("__call__", &similarities, nb::arg("distances"));

  m.def("nearest_edges", &nearest_edges_of, nb::arg("own"), nb::arg("found"), nb::arg("distances"),
        nb::arg("most"));
  m.def("weighted_edges", &weighted_edges, nb::arg("own"), nb::arg("found"), nb::arg("distances"),
        nb::arg("most"), nb::arg("similarity"), nb::arg("least"));
  nb::class_<WeightedEdges>(m, "WeightedEdges")
      .def("__init__", &construct_edges, nb::arg("u"), nb::arg("v"), nb::arg("weights"),
           nb::arg("least"))
      .def("__len__", [](const WeightedEdges& e) { return e.u.size(); })
      .def("columns", [](const WeightedEdges& e) {
        return nb::make_tuple(to_numpy(Vec<int64_t>(e.u)), to_numpy(Vec<int64_t>(e.v)),
                              to_numpy(Vec<double>(e.weights)));
      });

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
      .def("reserve", &reserve, nb::arg("vectors"), nb::arg("arrivals"), nb::arg("next_arrival"),
           nb::arg("next_id"))
      .def("give_back", &PointTable::give_back)
      .def("update", &update, nb::arg("engine"), nb::arg("keys"), nb::arg("leaving"),
           nb::arg("edges").none())
      .def("few_edges", &few_edges, nb::arg("engine"), nb::arg("leaving"), nb::arg("edges").none(),
           nb::arg("enough"));
}

}  // namespace dynhac
