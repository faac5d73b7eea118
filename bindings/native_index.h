// What the bindings of native neighbour indexes have in common.

#ifndef DYNHAC_BINDINGS_NATIVE_INDEX_H_
#define DYNHAC_BINDINGS_NATIVE_INDEX_H_

#include <concepts>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/poll.h"
#include "core/base/fair_lock.h"
#include "core/neighbors/index.h"
#include "core/neighbors/metric.h"

namespace dynhac {

// An index that threads may share. Its lock is only waited for without the interpreter lock.
template <class Index>
class SharedIndex : public NeighborIndex {
 public:
  template <class... Arguments>
    requires std::constructible_from<Index, Arguments...>
  explicit SharedIndex(Arguments&&... arguments) : index_(std::forward<Arguments>(arguments)...) {}

  size_t size() const override {
    const auto lock = lock_.read();
    return static_cast<size_t>(index_.size());
  }
  void read_vectors_from(std::shared_ptr<const VectorRows> rows) override {
    const auto lock = lock_.write();
    if constexpr (requires { index_.read_vectors_from(rows); }) index_.read_vectors_from(rows);
  }
  void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) override {
    const auto lock = lock_.write();
    index_.add(slots, vectors, poll);
  }
  void remove(std::span<const int64_t> slots, Poll* poll) override {
    const auto lock = lock_.write();
    index_.remove(slots, poll);
  }
  void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* poll) override {
    const auto lock = lock_.read();
    index_.query(vectors, k, slots, distances, poll);
  }
  bool intact() const override {
    const auto lock = lock_.read();
    return index_.intact();
  }
  auto points() const
    requires requires(const Index& index) { index.points(); }
  {
    const auto lock = lock_.read();
    return index_.points();
  }
  size_t dimension() const { return static_cast<size_t>(index_.dimension()); }

 protected:
  Index index_;
  FairLock lock_;
};

namespace native_index {

inline constexpr const char* kMetricNames[] = {"euclidean", "cosine", "inner_product"};

inline const char* name_of(Metric metric) {
  return kMetricNames[static_cast<size_t>(metric)];
}

inline Metric to_metric(std::string_view name) {
  for (size_t i = 0; i < std::size(kMetricNames); ++i) {
    if (name == kMetricNames[i]) return static_cast<Metric>(i);
  }
  throw std::invalid_argument("no metric has the name " + std::string(name));
}

inline void require_columns(size_t dimension, const Table<float>& vectors) {
  if (vectors.columns() != dimension) {
    throw std::invalid_argument("vectors have " + std::to_string(vectors.columns()) +
                                " dimensions, but those of the index have " +
                                std::to_string(dimension));
  }
}

// Arrays are copied: another thread may write to them while the index reads them.
template <class T, int Dimensions>
Vec<T> copy_of(const Array<T, Dimensions>& array) {
  return {array.view().begin(), array.view().end()};
}

// Signals are handled in the middle of additions and searches.
template <class Index>
void add(Index& index, const Column<int64_t>& slots, const Table<float>& vectors) {
  require_columns(index.dimension(), vectors);
  if (vectors.rows() != slots.size()) {
    throw std::invalid_argument(std::to_string(slots.size()) + " slots have " +
                                std::to_string(vectors.rows()) + " vectors; each needs one");
  }
  const Vec<int64_t> own_slots = copy_of(slots);
  const Vec<float> own_vectors = copy_of(vectors);
  Meter poll{nb::none()};
  without_gil([&] { index.add(own_slots, own_vectors, &poll); });
}

template <class Index>
void remove(Index& index, const Column<int64_t>& slots) {
  const Vec<int64_t> own_slots = copy_of(slots);
  Meter poll{nb::none()};
  without_gil([&] { index.remove(own_slots, &poll); });
}

template <class Index>
nb::object query(Index& index, const Table<float>& vectors, int64_t k) {
  require_columns(index.dimension(), vectors);
  if (k < 0) throw std::invalid_argument("k is " + std::to_string(k) + "; it must be >= 0");
  const size_t n = vectors.rows(), width = static_cast<size_t>(k);
  constexpr size_t kMost = size_t{1} << 48;  // places, more than fit in memory
  if (width > kMost / (n + 1)) throw std::bad_alloc();
  const Vec<float> queries = copy_of(vectors);
  Vec<int64_t> slots(n * width);
  Vec<double> distances(n * width);
  Meter poll{nb::none()};
  without_gil([&] { index.query(queries, width, slots, distances, &poll); });
  return nb::make_tuple(to_numpy(std::move(slots), {n, width}),
                        to_numpy(std::move(distances), {n, width}));
}

template <class Index>
nb::object points(const Index& index) {
  auto found = without_gil([&] { return index.points(); });
  const size_t n = found.slots.size();
  return nb::make_tuple(to_numpy(std::move(found.slots)),
                        to_numpy(std::move(found.vectors), {n, index.dimension()}));
}

// The methods that they all have.
template <class Index>
void bind(nb::class_<Index, NeighborIndex>& type) {
  type.def("__len__", [](const Index& i) { return without_gil([&] { return i.size(); }); })
      .def("add", &add<Index>, nb::arg("slots"), nb::arg("vectors"))
      .def("remove", &remove<Index>, nb::arg("slots"))
      .def("query", &query<Index>, nb::arg("vectors"), nb::arg("k"));
  if constexpr (requires(const Index& i) { i.points(); }) type.def("points", &points<Index>);
}

}  // namespace native_index
}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_NATIVE_INDEX_H_
