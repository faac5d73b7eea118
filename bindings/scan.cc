// Class Scan: the exact native index for any metric. Functions pair_distances and scaled: the
// distances that all indexes report.

#include "core/neighbors/scan.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bindings/bindings.h"
#include "bindings/native_index.h"

namespace dynhac {
namespace {

class SharedScan : public SharedIndex<Scan> {
 public:
  SharedScan(const char* metric, size_t dimension, uint32_t threads)
      : SharedIndex(native_index::to_metric(metric), std::max<size_t>(dimension, 1), threads),
        metric_(native_index::to_metric(metric)),
        threads_(threads) {}

  const char* metric() const { return native_index::name_of(metric_); }
  uint32_t threads() const { return threads_; }

 private:
  Metric metric_;
  uint32_t threads_;
};

// For pickle. An index is made again from its vectors.
nb::object get_state(const SharedScan& scan) {
  return nb::make_tuple(scan.metric(), scan.dimension(), scan.threads(),
                        native_index::points(scan));
}

void set_state(SharedScan& scan, const nb::tuple& state) {
  new (&scan) SharedScan(nb::cast<const char*>(state[0]), nb::cast<size_t>(state[1]),
                         nb::cast<uint32_t>(state[2]));
  const nb::object slots = state[3][0], vectors = state[3][1];
  Column<int64_t> slot_column;
  Table<float> vector_table;
  if (!slot_column.open(slots.ptr()) || !vector_table.open(vectors.ptr())) {
    throw std::invalid_argument("not the state of a scan");
  }
  native_index::add(scan, slot_column, vector_table);
}

nb::object pair_distances(const char* metric, const Table<float>& a, const Table<float>& b) {
  const Metric rule = native_index::to_metric(metric);
  const size_t rows = a.rows(), columns = a.columns();
  if (b.rows() != rows || b.columns() != columns) {
    throw std::invalid_argument("the vectors are not pairs");
  }
  Vec<double> found(rows);
  without_gil([&] {
    for (size_t row = 0; row < rows; ++row) {
      const size_t begin = row * columns;
      found[row] = distance(rule, a.view().subspan(begin, columns),
                            b.view().subspan(begin, columns), kernels().front());
    }
  });
  return to_numpy(std::move(found));
}

nb::object scaled(const Table<float>& vectors) {
  const size_t rows = vectors.rows(), columns = vectors.columns();
  Vec<float> found(rows * columns);
  without_gil([&] {
    for (size_t row = 0; row < rows; ++row) {
      const auto vector = vectors.view().subspan(row * columns, columns);
      scale_to_length_1(vector, kernels().front(), found.data() + row * columns);
    }
  });
  return to_numpy(std::move(found), {rows, columns});
}

}  // namespace

void bind_scan(nb::module_& m) {
  nb::class_<SharedScan, NeighborIndex> type(m, "Scan");
  type.def(nb::init<const char*, size_t, uint32_t>(), nb::arg("metric"), nb::arg("dimension"),
           nb::arg("threads"));
  type.def("__getstate__", &get_state).def("__setstate__", &set_state);
  native_index::bind(type);
  m.def("pair_distances", &pair_distances, nb::arg("metric"), nb::arg("a"), nb::arg("b"));
  m.def("scaled", &scaled, nb::arg("vectors"));
}

}  // namespace dynhac
