// dynhac._core.Engine. Thin: arrays in, arrays out, exceptions translated. The GIL is released
// around everything that takes longer than a look-up; the engine's own lock is only ever waited for
// without the GIL.

#include "core/hierarchy/engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/ids.h"
#include "bindings/numbers.h"
#include "bindings/poll.h"
#include "bindings/state_columns.h"
#include "core/base/memory.h"
#include "core/hierarchy/state.h"
#include "core/hierarchy/text_batch.h"

namespace dynhac {
namespace {

using WithoutGil = nb::call_guard<nb::gil_scoped_release>;  // releases the GIL during the call

nb::handle snapshot_type, path_type, meeting_type, watch_state_type, reported_state_type,
    cluster_summary_type;

nb::object to_python(Snapshot&& s) {
  const size_t m = s.size.size();
  return snapshot_type(s.version, to_numpy(std::move(s.keys)),
                       to_numpy(std::move(s.children), {m, 2}), to_numpy(std::move(s.similarity)),
                       to_numpy(std::move(s.min_similarity)), to_numpy(std::move(s.size)),
                       to_numpy(std::move(s.node_ids)), to_numpy(std::move(s.level)));
}

void expect_equal_lengths(bool equal, const char* names) {
  if (!equal) throw std::invalid_argument(std::string(names) + " must have one length");
}

EngineParameters parameters_of(double epsilon, double threshold, double resolution,
                               int64_t threads) {
  if (!(epsilon >= 0) || !std::isfinite(epsilon)) throw std::invalid_argument("epsilon");
  if (!(threshold >= 0) || !std::isfinite(threshold)) throw std::invalid_argument("threshold");
  if (!(resolution > 0) || !std::isfinite(resolution)) throw std::invalid_argument("resolution");
  if (threads < 1 || threads > 1024) throw std::invalid_argument("threads");
  return {epsilon, threshold, resolution, static_cast<uint32_t>(threads)};
}

void construct(Engine* self, double epsilon, double threshold, double resolution, int64_t threads) {
  const EngineParameters p = parameters_of(epsilon, threshold, resolution, threads);
  new (self) Engine(p.epsilon, p.threshold, p.resolution, p.threads);
}

nb::list state_columns(nb::handle_t<Engine> self) {
  const Engine& engine = nb::cast<const Engine&>(self);
  nb::list columns;
  size_t index = 0;
  for (const std::string& name : EngineState::names(engine)) {
    const auto make = [&engine, index](Workers& workers) {
      return std::visit([](auto&& values) -> AnyColumn { return std::move(values); },
                        EngineState::save(engine, index, workers));
    };
    add_column(columns, name, {nb::borrow(self), make, engine.threads()});
    ++index;
  }
  return columns;
}

using AnyColumn = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

StateColumn to_column(const AnyColumn& array) {
  if (array.dtype() == nb::dtype<uint32_t>()) {
    return std::span(static_cast<const uint32_t*>(array.data()), array.size());
  }
  if (array.dtype() == nb::dtype<int64_t>()) {
    return std::span(static_cast<const int64_t*>(array.data()), array.size());
  }
  if (array.dtype() == nb::dtype<double>()) {
    return std::span(static_cast<const double*>(array.data()), array.size());
  }
  throw std::invalid_argument("a column must be of uint32, int64 or float64");
}

Engine* load(double epsilon, double threshold, double resolution, int64_t threads,
             const nb::dict& arrays, nb::handle progress) {
  const EngineParameters parameters = parameters_of(epsilon, threshold, resolution, threads);
  std::vector<AnyColumn> kept;  // keeps the arrays alive while the columns are read
  StateColumns columns;
  for (const auto& [name, values] : arrays) {
    AnyColumn array;
    std::string key;
    if (!nb::try_cast(name, key) || !nb::try_cast(values, array)) {
      throw std::invalid_argument("a column is not a named contiguous array of one dimension");
    }
    columns.emplace(std::move(key), to_column(array));
    kept.push_back(std::move(array));
  }
  CallPoll poll(progress);
  return without_gil([&] { return EngineState::load(parameters, columns, poll.get()).release(); });
}

// A batch is a tuple of the columns of a Batch, in their order: one argument instead of seven,
// since nanobind takes more time for functions with many.
template <class T>
void open_column(const nb::tuple& batch, size_t index, Column<T>& column) {
  if (!column.open(batch[index].ptr())) {
    throw nb::type_error("a column of a batch is not a contiguous array of the right type");
  }
}

void expect_columns(const nb::tuple& batch) {
  if (batch.size() != 7) throw nb::type_error("a batch has seven columns");
}

Change update(Engine& engine, const nb::tuple& columns, nb::handle progress) {
  expect_columns(columns);
  Column<int64_t> ids[6];
  Column<double> w;
  for (size_t i = 0; i < std::size(ids); ++i) open_column(columns, i, ids[i]);
  open_column(columns, 6, w);
  const auto& [remove, add, remove_u, remove_v, u, v] = ids;
  expect_equal_lengths(remove_u.size() == remove_v.size(), "remove_u and remove_v");
  expect_equal_lengths(u.size() == v.size() && v.size() == w.size(), "u, v and w");
  const Batch batch = {remove.view(), add.view(), remove_u.view(), remove_v.view(),
                       u.view(),      v.view(),   w.view()};
  CallPoll poll(progress);
  return without_gil([&] { return engine.update(batch, poll.get()); });
}

Change update_text(Engine& engine, IdTable& ids, const nb::tuple& columns, nb::handle progress) {
  expect_columns(columns);
  Column<double> w;
  open_column(columns, 6, w);
  const auto texts = [&](size_t index) { return to_texts(columns[index]); };
  const TextBatch batch = {texts(0), texts(1), texts(2), texts(3), texts(4), texts(5), w.view()};
  expect_equal_lengths(batch.remove_u.size() == batch.remove_v.size(), "remove_u and remove_v");
  expect_equal_lengths(batch.u.size() == batch.v.size() && batch.v.size() == w.size(),
                       "u, v and w");
  CallPoll poll(progress);
  return without_gil([&] { return apply_text_batch(engine, ids, batch, poll.get()); });
}

nb::object to_python(EdgeList&& list, double resolution) {
  Vec<double> w;
  w.reserve(list.w.size());
  for (const Weight weight : list.w) w.push_back(static_cast<double>(weight) * resolution);
  return nb::make_tuple(to_numpy(std::move(list.u)), to_numpy(std::move(list.v)),
                        to_numpy(std::move(w)));
}

nb::object edges(const Engine& engine) {
  auto [keys, list] = without_gil([&] { return engine.edges_with_keys(); });
  for (Vec<int64_t>* ends : {&list.u, &list.v}) {
    for (int64_t& end : *ends) end = keys[static_cast<size_t>(end)];
  }
  return to_python(std::move(list), engine.resolution());
}

nb::object edges_of(const Engine& engine, const Column<int64_t>& keys) {
  return to_python(without_gil([&] { return engine.edges_of(keys.view()); }), engine.resolution());
}

nb::object degrees(const Engine& engine, const Column<int64_t>& keys) {
  return to_numpy(without_gil([&] { return engine.degrees(keys.view()); }));
}

nb::object to_python(Path&& path) {
  return path_type(to_numpy(std::move(path.node_ids)), to_numpy(std::move(path.similarity)),
                   to_numpy(std::move(path.size)));
}

nb::object meeting(const Engine& engine, int64_t a, int64_t b) {
  Meeting m = without_gil([&] { return engine.meeting(a, b); });
  return meeting_type(to_python(std::move(m.a)), to_python(std::move(m.b)), m.meet, m.least);
}

nb::object summarize(const Engine& engine, int64_t version, const Column<int64_t>& labels,
                     int64_t count, std::optional<int64_t> only, size_t most_nearest) {
  std::optional<ClusterSummary> s = without_gil(
      [&] { return engine.summarize(version, labels.view(), count, only, most_nearest); });
  if (!s.has_value()) return nb::none();
  return cluster_summary_type(
      to_numpy(std::move(s->start)), to_numpy(std::move(s->cohesion)),
      to_numpy(std::move(s->density)), to_numpy(std::move(s->similarity)),
      to_numpy(std::move(s->node_ids)), to_numpy(std::move(s->members)),
      to_numpy(std::move(s->typicality)), to_numpy(std::move(s->outlier)),
      to_numpy(std::move(s->inside_share)), to_numpy(std::move(s->nearest_start)),
      to_numpy(std::move(s->nearest)), to_numpy(std::move(s->nearest_linkage)));
}

uint32_t size_bound(int64_t min_size) {
  if (min_size < 1) throw std::invalid_argument("min_size");
  return static_cast<uint32_t>(std::min<int64_t>(min_size, kNone));
}

Engine::WatchParameters watch_parameters(std::optional<double> theta, int64_t min_size,
                                         nb::handle patience, bool in_time) {
  return {theta, size_bound(min_size), to_number(patience), in_time};
}

int64_t add_watch(Engine& engine, std::optional<double> theta, int64_t min_size,
                  nb::handle patience, bool in_time) {
  const auto parameters = watch_parameters(theta, min_size, patience, in_time);
  return without_gil([&] { return engine.add_watch(parameters); });
}

// The columns of a Patience::State, in the order of Python's tuple.
constexpr Vec<int64_t> Patience::State::* kReportedColumns[] = {
    &Patience::State::usual,         &Patience::State::reported, &Patience::State::held_key,
    &Patience::State::held_reported, &Patience::State::waiting,  &Patience::State::since,
    &Patience::State::kind};

nb::object watch_state(const Engine& engine, int64_t handle) {
  Engine::WatchState state = without_gil([&] { return engine.watch_state(handle); });
  nb::object reported = nb::none();
  if (state.reported) {
    nb::list columns;
    for (const auto column : kReportedColumns)
      columns.append(to_numpy(std::move((*state.reported).*column)));
    reported = reported_state_type(*nb::tuple(columns), state.reported->next);
  }
  return watch_state_type(to_numpy(std::move(state.raw.ids)), to_numpy(std::move(state.raw.roots)),
                          state.raw.next, reported);
}

int64_t restore_watch(Engine& engine, std::optional<double> theta, int64_t min_size,
                      nb::handle patience, bool in_time, const Column<int64_t>& ids,
                      const Column<int64_t>& roots, int64_t next, nb::handle reported) {
  const auto parameters = watch_parameters(theta, min_size, patience, in_time);
  Engine::WatchState state;
  state.raw.ids.assign(ids.view().begin(), ids.view().end());
  state.raw.roots.assign(roots.view().begin(), roots.view().end());
  state.raw.next = next;
  if (!reported.is_none()) {
    state.reported.emplace();
    size_t at = 0;
    for (const auto column : kReportedColumns) {
      Column<int64_t> values;
      if (!values.open(nb::object(reported[at++]).ptr()))
        throw std::invalid_argument("reported clusters");
      ((*state.reported).*column).assign(values.view().begin(), values.view().end());
    }
    state.reported->next = nb::cast<int64_t>(reported[at]);
  }
  return without_gil([&] { return engine.restore_watch(parameters, state); });
}

nb::object export_all(const Engine& engine, nb::handle progress) {
  CallPoll poll(progress);
  Engine::Export all = without_gil([&] { return engine.export_all(poll.get()); });
  return nb::make_tuple(to_python(std::move(all.snapshot)), to_numpy(std::move(all.edges.u)),
                        to_numpy(std::move(all.edges.v)), to_numpy(std::move(all.edges.w)),
                        all.wrong_caches);
}

}  // namespace

void bind_engine(nb::module_& m) {
  snapshot_type = named_tuple(
      "Snapshot",
      {"version", "keys", "children", "similarity", "min_similarity", "size", "node_ids", "level"},
      m);
  path_type = named_tuple("Path", {"node_ids", "similarity", "size"}, m);
  meeting_type = named_tuple("Meeting", {"a", "b", "meet", "least"}, m);
  watch_state_type = named_tuple("WatchState", {"ids", "roots", "next", "reported"}, m);
  reported_state_type = named_tuple(
      "ReportedState",
      {"usual", "reported", "held_key", "held_reported", "waiting", "since", "kind", "next"}, m);
  cluster_summary_type = named_tuple(
      "ClusterSummary",
      {"start", "cohesion", "density", "similarity", "node_ids", "members", "typicality", "outlier",
       "inside_share", "nearest_start", "nearest", "nearest_linkage"},
      m);

  nb::class_<Engine>(m, "Engine", nb::is_weak_referenceable())
      .def("__init__", &construct, nb::arg("epsilon"), nb::arg("threshold"), nb::arg("resolution"),
           nb::arg("threads"))
      .def("__len__", &Engine::size, WithoutGil())
      .def_prop_ro("version", &Engine::version, WithoutGil())
      .def("contains", &Engine::contains, WithoutGil())
      .def("update", &update, nb::arg("batch"), nb::arg("progress").none() = nb::none())
      .def("update_text", &update_text, nb::arg("ids"), nb::arg("batch"),
           nb::arg("progress").none() = nb::none())
      .def("keys", [](const Engine& e) { return to_numpy(without_gil([&] { return e.keys(); })); })
      .def("edges", &edges)
      .def("snapshot",
           [](const Engine& e) { return to_python(without_gil([&] { return e.snapshot(); })); })
      .def("level_sizes", &Engine::level_sizes, WithoutGil())
      .def("degrees", &degrees, nb::arg("keys"))
      .def("edges_of", &edges_of, nb::arg("keys"))
      .def("meeting", &meeting, nb::arg("a"), nb::arg("b"))
      .def("summarize", &summarize, nb::arg("version"), nb::arg("labels"), nb::arg("count"),
           nb::arg("only").none(), nb::arg("most_nearest"))
      .def("add_watch", &add_watch, nb::arg("theta").none(), nb::arg("min_size"),
           nb::arg("patience").none(), nb::arg("in_time"))
      .def("restore_watch", &restore_watch, nb::arg("theta").none(), nb::arg("min_size"),
           nb::arg("patience").none(), nb::arg("in_time"), nb::arg("ids"), nb::arg("roots"),
           nb::arg("next"), nb::arg("reported").none())
      .def("watch_state", &watch_state, nb::arg("handle"))
      .def("watch_handles", &Engine::watch_handles, WithoutGil())
      .def("remove_watch", &Engine::remove_watch, nb::arg("handle"), WithoutGil())
      // They stay in the engine until they are dropped: an interrupted caller can ask again.
      .def("steps", &Engine::steps, nb::arg("handle"), WithoutGil())
      .def("drop_steps", &Engine::drop_steps, nb::arg("handle"), nb::arg("count"), WithoutGil())
      .def(
          "watch_labels",
          [](const Engine& e, int64_t handle) {
            auto labels = without_gil([&] { return e.watch_labels(handle); });
            return nb::make_tuple(to_numpy(std::move(labels.keys)),
                                  to_numpy(std::move(labels.clusters)));
          },
          nb::arg("handle"))
      .def(
          "watch_clusters",
          [](const Engine& e, int64_t handle) {
            auto c = without_gil([&] { return e.watch_clusters(handle); });
            return nb::make_tuple(to_numpy(std::move(c.ids)), to_numpy(std::move(c.sizes)));
          },
          nb::arg("handle"))
      .def("cluster_of", &Engine::cluster_of, nb::arg("handle"), nb::arg("key"), WithoutGil())
      .def(
          "members",
          [](const Engine& e, int64_t handle, int64_t cluster) {
            return to_numpy(without_gil([&] { return e.members(handle, cluster); }));
          },
          nb::arg("handle"), nb::arg("cluster"))
      .def("memory", &Engine::memory, WithoutGil())
      .def("export", &export_all, nb::arg("progress").none() = nb::none())
      .def("state_columns", &state_columns)
      .def_static("load", &load, nb::arg("epsilon"), nb::arg("threshold"), nb::arg("resolution"),
                  nb::arg("threads"), nb::arg("columns"), nb::arg("progress").none() = nb::none(),
                  nb::rv_policy::take_ownership);
}

}  // namespace dynhac
