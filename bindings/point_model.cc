// Class PointModel: points, their neighbour graph and one update of them; PointChangeData: what an
// update did.

#include "core/points/point_model.h"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/ids.h"
#include "bindings/numbers.h"
#include "bindings/poll.h"
#include "bindings/python_index.h"
#include "bindings/similarity.h"
#include "bindings/state_columns.h"

namespace dynhac {
namespace {

nb::handle nearest_type;

constexpr const char* kKinds[] = {nullptr, "int", "float", "date"};  // by TimeKind

TimeKind to_kind(nb::handle name) {
  if (name.is_none()) return TimeKind::kNone;
  for (size_t i = 1; i < std::size(kKinds); ++i) {
    if (std::string_view(nb::cast<const char*>(name)) == kKinds[i]) return static_cast<TimeKind>(i);
  }
  throw std::invalid_argument("no timestamps are of this kind");
}

// The orders of an array of timestamps: of float64 if the kind is floats, else of int64.
Vec<int64_t> to_orders(TimeKind kind, nb::handle times) {
  if (kind == TimeKind::kNone) return {};
  Column<int64_t> ints;
  if (kind != TimeKind::kFloats) {
    if (!ints.open(times.ptr())) throw std::invalid_argument("times");
    return {ints.view().begin(), ints.view().end()};
  }
  Column<double> floats;
  if (!floats.open(times.ptr())) throw std::invalid_argument("times");
  Vec<int64_t> orders;
  orders.reserve(floats.size());
  for (const double time : floats.view()) {
    if (!std::isfinite(time)) throw std::invalid_argument("a timestamp is not finite");
    orders.push_back(order_of(time));
  }
  return orders;
}

Vec<double> to_floats(const Vec<int64_t>& orders) {
  Vec<double> times;
  times.reserve(orders.size());
  for (const int64_t order : orders) times.push_back(time_of(order));
  return times;
}

nb::object times_to_python(TimeKind kind, Vec<int64_t> orders) {
  if (kind == TimeKind::kNone) return nb::none();
  if (kind != TimeKind::kFloats) return to_numpy(std::move(orders));
  return to_numpy(to_floats(orders));
}

// A model, and the objects of Python's that it refers to.
class BoundModel {
 public:
  BoundModel(nb::object engine, nb::object ids, nb::object similarity, nb::object choose,
             nb::handle index, int64_t n_neighbors, double least_weight, bool repair,
             nb::handle max_points, nb::handle max_age)
      : engine_(std::move(engine)),
        ids_(std::move(ids)),
        similarity_(std::move(similarity)),
        function_(similarity_),
        chooser_(std::move(choose)),
        model_(nb::cast<Engine&>(engine_), nb::cast<IdTable&>(ids_), rule(), chooser_,
               {static_cast<size_t>(n_neighbors), least_weight, repair},
               Window(max_points.is_none() ? std::nullopt
                                           : std::optional(nb::cast<int64_t>(max_points)),
                      to_number(max_age)),
               to_index_choice(index)) {}

  PointModel& model() { return model_; }
  const IdTable& ids() const { return nb::cast<const IdTable&>(ids_); }

  // An object for the Python instance of the index, invalid if there is none.
  nb::handle index() const { return nb::find(model_.index().index.get()); }

  int traverse(visitproc visit, void* arg) {
    Py_VISIT(engine_.ptr());
    Py_VISIT(ids_.ptr());
    Py_VISIT(similarity_.ptr());
    Py_VISIT(chooser_.function().ptr());
    if (model_.index().index != nullptr) Py_VISIT(index().ptr());
    return 0;
  }

 private:
  const Similarity& rule() const {
    const SimilarityRule* found = nullptr;
    if (nb::try_cast(similarity_, found)) return *found;
    return function_;
  }

  nb::object engine_, ids_, similarity_;
  PythonSimilarity function_;  // if the similarity is not a rule
  PythonIndexChooser chooser_;
  PointModel model_;
};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<BoundModel>(self)->traverse(visit, arg) : 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {0, nullptr}};

PointChange update(BoundModel& bound, nb::handle vectors, nb::handle ids, nb::handle time_kind,
                   nb::handle times, nb::handle deleted, nb::handle clock, nb::handle progress) {
  PointModel& model = bound.model();
  PointBatch batch;
  batch.deleted = to_ids(deleted);
  batch.inserted = to_ids(ids);
  Table<float> rows;
  if (!vectors.is_none()) {
    if (!rows.open(vectors.ptr())) throw std::invalid_argument("vectors");
    batch.vectors = rows.view();
    batch.dimension = rows.columns();
  }
  batch.time_kind = to_kind(time_kind);
  const Vec<int64_t> orders = to_orders(batch.time_kind, times);
  batch.times = orders;
  batch.clock = to_number(clock);
  const size_t count = batch.inserted.size();
  const bool timed = batch.time_kind != TimeKind::kNone;
  const PointTable* table = model.table();
  if ((count > 0 && batch.dimension == 0) || batch.vectors.size() != count * batch.dimension ||
      orders.size() != (timed ? count : 0) ||
      (count > 0 && table != nullptr &&
       (table->dimension() != batch.dimension || timed != (table->kind() != TimeKind::kNone)))) {
    throw std::invalid_argument("the columns of a batch do not fit together, or not the model");
  }
  CallPoll poll(progress);
  return without_gil([&] { return model.update(batch, poll.get()); });
}

std::span<const float> rows_of(BoundModel& bound, const Table<float>& vectors) {
  const int64_t dimension = bound.model().dimension();
  if (dimension >= 0 && vectors.rows() > 0 &&
      static_cast<int64_t>(vectors.columns()) != dimension) {
    throw std::invalid_argument("the vectors are not of the dimension of the model");
  }
  return vectors.view();
}

nb::object to_python(NearestPoints&& nearest, size_t rows) {
  if (nearest.counts.empty()) nearest.counts.resize(rows);
  return nearest_type(to_numpy(std::move(nearest.keys), {rows, nearest.width}),
                      to_numpy(std::move(nearest.distances), {rows, nearest.width}),
                      to_numpy(std::move(nearest.similarities), {rows, nearest.width}),
                      to_numpy(std::move(nearest.counts)));
}

nb::object nearest(BoundModel& bound, const Table<float>& vectors, int64_t k) {
  const std::span<const float> rows = rows_of(bound, vectors);
  CallPoll poll{nb::none()};
  return to_python(
      without_gil([&] { return bound.model().nearest(rows, static_cast<size_t>(k), poll.get()); }),
      vectors.rows());
}

nb::object predict(BoundModel& bound, const Table<float>& vectors, int64_t k) {
  const std::span<const float> rows = rows_of(bound, vectors);
  CallPoll poll{nb::none()};
  NearestPoints nearest;
  Vec<int64_t> joined(vectors.rows(), -1);
  Vec<double> scores(vectors.rows());
  Vec<int64_t> sizes(vectors.rows());
  Vec<int64_t> nodes(vectors.rows(), -1);
  without_gil([&] {
    nearest = bound.model().nearest(rows, static_cast<size_t>(k), poll.get());
    const Vec<Placement> placements = bound.model().place(nearest, poll.get());
    for (size_t row = 0; row < placements.size(); ++row) {
      if (placements[row].edge == Placement::kNoEdge) continue;
      joined[row] = static_cast<int64_t>(placements[row].edge - row * nearest.width);
      scores[row] = placements[row].similarity;
      sizes[row] = placements[row].size;
      nodes[row] = placements[row].node;
    }
  });
  return nb::make_tuple(to_python(std::move(nearest), vectors.rows()), to_numpy(std::move(joined)),
                        to_numpy(std::move(scores)), to_numpy(std::move(sizes)),
                        to_numpy(std::move(nodes)));
}

nb::object vectors(BoundModel& bound, nb::handle ids) {
  const PointModel& model = bound.model();
  const PointTable* table = model.table();
  Vec<int64_t> slots;
  if (!ids.is_none()) {
    slots = model.find(to_ids(ids));
  } else if (table != nullptr) {
    slots = table->in_order();
  }
  if (table == nullptr) return to_numpy(Vec<float>(), {0, 0});
  return to_numpy(table->vectors_of(slots), {slots.size(), table->dimension()});
}

// Slots in use, ascending, and their vectors.
nb::object slots_and_vectors(BoundModel& bound) {
  const PointTable* table = bound.model().table();
  if (table == nullptr) throw std::logic_error("there are no points");
  Vec<int64_t> slots = table->used();
  const size_t count = slots.size();
  nb::object vectors = to_numpy(table->vectors_of(slots), {count, table->dimension()});
  return nb::make_tuple(to_numpy(std::move(slots)), vectors);
}

nb::object save(BoundModel& bound) {
  const PointTable* table = bound.model().table();
  if (table == nullptr) throw std::logic_error("there are no points");
  PointTable::State state = table->state();
  return nb::make_tuple(to_numpy(std::move(state.keys)), to_numpy(std::move(state.arrival)),
                        to_numpy(std::move(state.vectors), {table->top(), table->dimension()}),
                        times_to_python(state.kind, std::move(state.times)), state.next_arrival,
                        state.next_id);
}

// The columns of the table; no update may come before they are made.
nb::list state_columns(nb::handle_t<BoundModel> self) {
  const PointTable* table = nb::cast<BoundModel&>(self).model().table();
  nb::list columns;
  if (table == nullptr) return columns;
  const nb::object owner = nb::borrow(self);
  const auto add = [&](const char* name, MakeColumn make, size_t width = 0) {
    add_column(columns, name, {owner, std::move(make), 1, width});
  };
  add("keys", [=](Workers&) -> AnyColumn { return table->saved_keys(); });
  add("arrival", [=](Workers&) -> AnyColumn { return table->saved_arrival(); });
  add("vectors", [=](Workers&) -> AnyColumn { return table->saved_vectors(); }, table->dimension());
  if (table->kind() == TimeKind::kFloats) {
    add("timestamps", [=](Workers&) -> AnyColumn { return to_floats(table->saved_times()); });
  } else if (table->kind() != TimeKind::kNone) {
    add("timestamps", [=](Workers&) -> AnyColumn { return table->saved_times(); });
  }
  return columns;
}

void load(BoundModel& bound, const Column<int64_t>& keys, const Column<int64_t>& arrival,
          const Table<float>& vectors, nb::handle time_kind, nb::handle times, int64_t next_arrival,
          int64_t next_id) {
  if (vectors.rows() != keys.size()) throw std::invalid_argument("vectors and keys");
  PointTable::State state;
  state.keys.assign(keys.view().begin(), keys.view().end());
  state.arrival.assign(arrival.view().begin(), arrival.view().end());
  state.vectors.assign(vectors.view().begin(), vectors.view().end());
  state.kind = to_kind(time_kind);
  state.times = to_orders(state.kind, times);
  state.next_arrival = next_arrival;
  state.next_id = next_id;
  bound.model().load(std::make_shared<PointTable>(vectors.columns(), std::move(state)));
}

nb::object index(const BoundModel& bound) {
  const nb::handle found = bound.index();
  return found.is_valid() ? nb::borrow(found) : nb::none();
}

nb::object backend(BoundModel& bound) {
  const std::string& name = bound.model().index().name;
  return name.empty() ? nb::none() : nb::object(nb::str(name.data(), name.size()));
}

// A property of the table, None before there are points.
template <class Value>
auto of_table(Value value) {
  return [value](BoundModel& bound) -> nb::object {
    const PointTable* table = bound.model().table();
    return table == nullptr ? nb::none() : nb::object(nb::cast(value(*table)));
  };
}

}  // namespace

void bind_point_model(nb::module_& m) {
  nearest_type = named_tuple("Nearest", {"keys", "distances", "similarities", "counts"}, m);
  nb::class_<PointChange, Change>(m, "PointChangeData")
      .def_prop_ro("text", [](const PointChange& c) { return c.expired.text; })
      .def("expired", [](const PointChange& c) { return to_python(IdColumn(c.expired)); })
      .def("repaired", [](const PointChange& c) { return to_python(IdColumn(c.repaired)); })
      .def_ro("seconds_search", &PointChange::seconds_search)
      .def_ro("seconds_total", &PointChange::seconds_total);

  nb::class_<BoundModel>(m, "PointModel", nb::type_slots(slots))
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::handle, int64_t, double,
                    bool, nb::handle, nb::handle>(),
           nb::arg("engine"), nb::arg("ids"), nb::arg("similarity"), nb::arg("choose"),
           nb::arg("index"), nb::arg("n_neighbors"), nb::arg("least_weight"), nb::arg("repair"),
           nb::arg("max_points").none(), nb::arg("max_age").none())
      .def("update", &update, nb::arg("vectors").none(), nb::arg("ids"),
           nb::arg("time_kind").none(), nb::arg("times").none(), nb::arg("deleted"),
           nb::arg("clock").none(), nb::arg("progress").none() = nb::none())
      .def_prop_ro("version", [](BoundModel& b) { return b.model().version(); })
      .def_prop_ro("text", [](BoundModel& b) { return b.ids().used(); })
      .def_prop_ro("dimension",
                   [](BoundModel& b) -> nb::object {
                     const int64_t dimension = b.model().dimension();
                     return dimension < 0 ? nb::none() : nb::object(nb::int_(dimension));
                   })
      .def_prop_ro("next_id", of_table([](const PointTable& t) { return t.next_id(); }))
      .def_prop_ro("nbytes", of_table([](const PointTable& t) { return t.bytes(); }))
      .def_prop_ro("time_kind", of_table([](const PointTable& t) {
                     return kKinds[static_cast<size_t>(t.kind())];
                   }))
      .def("nearest", &nearest, nb::arg("vectors"), nb::arg("k"))
      .def("predict", &predict, nb::arg("vectors"), nb::arg("k"))
      .def("vectors", &vectors, nb::arg("ids").none())
      .def("slots_and_vectors", &slots_and_vectors)
      .def_prop_rw(
          "clock", [](BoundModel& b) { return to_python(b.model().window().clock()); },
          [](BoundModel& b, nb::handle clock) { b.model().load_clock(to_number(clock)); },
          nb::for_setter(nb::arg("clock").none()))
      .def_prop_ro("index", &index)
      .def_prop_ro("backend", &backend)
      .def_prop_ro("index_max_points", [](BoundModel& b) { return b.model().index().max_points; })
      .def_prop_ro("index_lost", [](BoundModel& b) { return b.model().index_lost(); })
      .def_prop_ro("index_changed", [](BoundModel& b) { return b.model().index_changed(); })
      .def("lose_index", [](BoundModel& b) { b.model().lose_index(); })
      .def_prop_ro("index_saved", [](BoundModel& b) { return b.model().index_saved(); })
      .def("set_index_saved", [](BoundModel& b) { b.model().set_index_saved(); })
      .def("save", &save)
      .def("state_columns", &state_columns)
      .def_prop_ro("next_arrival", of_table([](const PointTable& t) { return t.next_arrival(); }))
      .def("load", &load, nb::arg("keys"), nb::arg("arrival"), nb::arg("vectors"),
           nb::arg("time_kind").none(), nb::arg("times").none(), nb::arg("next_arrival"),
           nb::arg("next_id"))
      .def(
          "share_vectors",
          [](BoundModel& b, NeighborIndex& index) { b.model().share_vectors(index); },
          nb::arg("index"))
      .def(
          "load_index",
          [](BoundModel& b, nb::handle index) { b.model().load_index(to_index_choice(index)); },
          nb::arg("index"))
      .def(
          "build_index",
          [](BoundModel& b, nb::handle index) {
            Meter poll{nb::none()};
            IndexChoice choice = to_index_choice(index);
            without_gil([&] { b.model().build_index(std::move(choice), &poll); });
          },
          nb::arg("index"));
}

}  // namespace dynhac
