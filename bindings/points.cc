#include "bindings/points.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "core/points/point_table.h"
#include "core/points/similarity.h"

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

void construct_table(PointTable* self, int64_t dimension, bool timed, bool floats) {
  if (dimension < 0) throw std::invalid_argument("dimension");
  const Times kind = !timed ? Times::kNone : floats ? Times::kFloats : Times::kInts;
  new (self) PointTable(static_cast<size_t>(dimension), kind);
}

PointTable* load_table(const Column<int64_t>& keys, const Column<int64_t>& arrival,
                       const Table<float>& vectors, nb::handle times, int64_t next_arrival,
                       int64_t next_id) {
  if (vectors.rows() != keys.size()) throw std::invalid_argument("vectors and keys");
  auto [kind, orders] = orders_of(times);
  PointTable::State state{
      copy_of(keys), copy_of(arrival),  {vectors.view().begin(), vectors.view().end()},
      kind,          std::move(orders), next_arrival,
      next_id};
  return new PointTable(vectors.columns(), std::move(state));
}

// Times as an array of their kind; None if there are none.
nb::object times_from(Times kind, Vec<int64_t> orders) {
  if (kind == Times::kNone) return nb::none();
  if (kind == Times::kInts) return to_numpy(std::move(orders));
  Vec<double> times;
  times.reserve(orders.size());
  for (const int64_t order : orders) times.push_back(time_of(order));
  return to_numpy(std::move(times));
}

nb::object save_table(const PointTable& table) {
  PointTable::State state = table.state();
  return nb::make_tuple(to_numpy(std::move(state.keys)), to_numpy(std::move(state.arrival)),
                        to_numpy(std::move(state.vectors), {table.top(), table.dimension()}),
                        times_from(state.kind, std::move(state.times)));
}

nb::object latest_time(const PointTable& table) {
  if (!table.latest()) return nb::none();
  if (table.kind() == Times::kFloats) return nb::float_(time_of(*table.latest()));
  return nb::int_(*table.latest());
}

nb::object oldest(PointTable& table, size_t count, nb::handle before, const Column<int64_t>& but) {
  const std::optional<int64_t> order = order_in(table, before);
  if (!before.is_none() && !order) throw std::invalid_argument("before");
  return to_numpy(table.oldest(count, order, but.view()));
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

std::optional<int64_t> to_int64(nb::handle value) {
  int overflow = 0;
  if (!PyLong_CheckExact(value.ptr())) return std::nullopt;
  const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  return overflow == 0 ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> order_in(const PointTable& table, nb::handle time) {
  if (table.kind() == Times::kInts) return to_int64(time);
  if (table.kind() == Times::kNone || !PyFloat_CheckExact(time.ptr())) return std::nullopt;
  const double value = PyFloat_AS_DOUBLE(time.ptr());
  return std::isfinite(value) ? std::optional(order_of(value)) : std::nullopt;
}

std::pair<Times, Vec<int64_t>> orders_of(nb::handle times) {
  if (times.is_none()) return {Times::kNone, {}};
  Column<int64_t> ints;
  if (ints.open(times.ptr())) return {Times::kInts, copy_of(ints)};
  Column<double> floats;
  if (!floats.open(times.ptr())) throw std::invalid_argument("times");
  Vec<int64_t> orders;
  orders.reserve(floats.size());
  for (const double time : floats.view()) {
    if (!std::isfinite(time)) throw std::invalid_argument("a timestamp is not finite");
    orders.push_back(order_of(time));
  }
  return {Times::kFloats, std::move(orders)};
}

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
      .def("__init__", &construct_table, nb::arg("dimension"), nb::arg("timed"), nb::arg("floats"))
      .def_static("load", &load_table, nb::arg("keys"), nb::arg("arrival"), nb::arg("vectors"),
                  nb::arg("times").none(), nb::arg("next_arrival"), nb::arg("next_id"),
                  nb::rv_policy::take_ownership)
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
      .def("oldest", &oldest, nb::arg("count"), nb::arg("before").none(), nb::arg("but"))
      .def_prop_ro("latest", &latest_time)
      .def(
          "times_of",
          [](const PointTable& t, const Column<int64_t>& slots) {
            return times_from(t.kind(), t.times_of(slots.view()));
          },
          nb::arg("slots"))
      .def(
          "recode",
          [](PointTable& t, bool floats) {
            if (t.kind() != Times::kNone) t.recode(floats ? Times::kFloats : Times::kInts);
          },
          nb::arg("floats"))
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
