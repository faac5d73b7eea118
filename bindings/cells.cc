// Class Cells: the approximate native index for many vectors.

#include "core/neighbors/cells.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "bindings/bindings.h"
#include "bindings/native_index.h"

namespace dynhac {
namespace {

class SharedCells : public SharedIndex<Cells> {
 public:
  SharedCells(const char* metric, size_t dimension, double recall, uint32_t threads)
      : SharedIndex(native_index::to_metric(metric), std::max<size_t>(dimension, 1), recall,
                    threads) {}

  Cells::State state() const {
    const auto lock = lock_.read();
    return index_.state();
  }
  void load(const Cells::State& state, std::span<const float> vectors, Poll* poll) {
    const auto lock = lock_.write();
    index_.load(state, vectors, poll);
  }
  Vec<float> vectors_of(std::span<const int64_t> slots) const {
    const auto lock = lock_.read();
    return index_.vectors_of(slots);
  }
  template <class Read>
  auto read(Read read) const {
    const auto lock = lock_.read();
    return read(index_);
  }
};

template <class T>
Vec<T> read_array(const nb::dict& arrays, const char* name, size_t columns) {
  const auto wrong = [&] {
    return std::invalid_argument("array " + std::string(name) + " of its index is not right");
  };
  if (!arrays.contains(name)) throw wrong();
  const nb::object array = arrays[name];
  Table<T> table;
  if (!table.open(array.ptr()) || table.columns() != columns) throw wrong();
  return {table.view().begin(), table.view().end()};
}

template <class T>
nb::object table(Vec<T>&& values, size_t columns) {
  const size_t rows = values.size() / columns;
  return to_numpy(std::move(values), {rows, columns});
}

// The state as arrays of rows; "coder" has the centre and the unit, "counters" what is left.
nb::dict save(const SharedCells& cells) {
  Cells::State state = without_gil([&] { return cells.state(); });
  nb::dict arrays;
  Vec<int64_t> sizes;
  for (size_t i = 0; i < state.sizes.size(); ++i) {
    sizes.push_back(state.sizes[i]);
    sizes.push_back(state.changes[i]);
  }
  state.centre.push_back(state.unit);
  Vec<int64_t> counters = {state.additions_left, state.reach.count, state.reach.credit};
  arrays["slots"] = to_numpy(std::move(state.slots));
  arrays["cells"] = table(std::move(sizes), 2);
  arrays["extents"] = table(std::move(state.extents), 2);
  arrays["centres"] = table(std::move(state.centres), cells.dimension());
  arrays["coder"] = table(std::move(state.centre), cells.dimension() + 1);
  arrays["samples"] = table(std::move(state.reach.sizes), 1);
  arrays["needed"] = table(std::move(state.reach.needed), Reach::kNeighbors);
  arrays["counters"] = table(std::move(counters), 3);
  return arrays;
}

void load(SharedCells& cells, const nb::dict& arrays, const Column<int64_t>& slots,
          const Table<float>& vectors) {
  native_index::require_columns(cells.dimension(), vectors);
  Cells::State state;
  state.slots = native_index::copy_of(slots);
  const Vec<float> rows = native_index::copy_of(vectors);
  const Vec<int64_t> sizes = read_array<int64_t>(arrays, "cells", 2);
  for (size_t i = 0; i < sizes.size(); i += 2) {
    state.sizes.push_back(sizes[i]);
    state.changes.push_back(sizes[i + 1]);
  }
  state.extents = read_array<double>(arrays, "extents", 2);
  state.centres = read_array<float>(arrays, "centres", cells.dimension());
  state.centre = read_array<double>(arrays, "coder", cells.dimension() + 1);
  const Vec<int64_t> counters = read_array<int64_t>(arrays, "counters", 3);
  if (state.centre.size() != cells.dimension() + 1 || counters.size() != 3) {
    throw std::invalid_argument("arrays of its index are not right");
  }
  state.unit = state.centre.back();
  state.centre.pop_back();
  state.additions_left = counters[0];
  state.reach.count = counters[1];
  state.reach.credit = counters[2];
  state.reach.needed = read_array<float>(arrays, "needed", Reach::kNeighbors);
  state.reach.sizes = read_array<int64_t>(arrays, "samples", 1);
  Meter poll{nb::none()};
  without_gil([&] { cells.load(state, rows, &poll); });
}

nb::object vectors_of(const SharedCells& cells, const Column<int64_t>& slots) {
  const Vec<int64_t> own_slots = native_index::copy_of(slots);
  Vec<float> found = without_gil([&] { return cells.vectors_of(own_slots); });
  return table(std::move(found), cells.dimension());
}

// A number that the index knows.
template <class Get>
auto reads(Get get) {
  return [get](const SharedCells& cells) { return without_gil([&] { return cells.read(get); }); };
}

}  // namespace

void bind_cells(nb::module_& m) {
  nb::class_<SharedCells, NeighborIndex> type(m, "Cells");
  type.def(nb::init<const char*, size_t, double, uint32_t>(), nb::arg("metric"),
           nb::arg("dimension"), nb::arg("recall"), nb::arg("threads"));
  native_index::bind(type);
  type.def("save", &save)
      .def("load", &load, nb::arg("arrays"), nb::arg("slots"), nb::arg("vectors"))
      .def("vectors_of", &vectors_of, nb::arg("slots"))
      .def_prop_ro("recall", reads([](const Cells& c) { return c.recall(); }))
      .def_prop_ro("measured_recall", reads([](const Cells& c) { return c.measured_recall(); }))
      .def_prop_ro("n_cells", reads([](const Cells& c) { return c.n_cells(); }))
      .def_prop_ro("memory", reads([](const Cells& c) { return c.memory(); }));
}

}  // namespace dynhac
