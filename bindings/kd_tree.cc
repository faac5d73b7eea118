// Class KdTree: the native index for few dimensions.

#include "core/neighbors/kd_tree.h"

#include <new>
#include <stdexcept>
#include <string>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/poll.h"
#include "core/base/fair_lock.h"
#include "core/neighbors/index.h"

namespace dynhac {
namespace {

// A tree that threads may share. Its lock is only waited for without the interpreter lock.
class SharedTree : public NeighborIndex {
 public:
  SharedTree(int64_t dimension, uint32_t threads) : tree_(dimension, threads) {}

  size_t size() const override {
    const auto lock = lock_.read();
    return static_cast<size_t>(tree_.size());
  }
  void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) override {
    const auto lock = lock_.write();
    tree_.add(slots, vectors, poll);
  }
  void remove(std::span<const int64_t> slots, Poll* poll) override {
    const auto lock = lock_.write();
    tree_.remove(slots, poll);
  }
  void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* poll) override {
    const auto lock = lock_.read();
    tree_.query(vectors, k, slots, distances, poll);
  }
  bool intact() const override {
    const auto lock = lock_.read();
    return tree_.whole();
  }
  KdTree::Points points() const {
    const auto lock = lock_.read();
    return tree_.points();
  }
  int64_t dimension() const { return tree_.dimension(); }

 private:
  KdTree tree_;
  FairLock lock_;
};

void require_columns(const SharedTree& tree, const Table<float>& vectors) {
  if (static_cast<int64_t>(vectors.columns()) != tree.dimension()) {
    throw std::invalid_argument("vectors have " + std::to_string(vectors.columns()) +
                                " dimensions, but those of the index have " +
                                std::to_string(tree.dimension()));
  }
}

// Arrays are copied: another thread may write to them while the tree reads them.
template <class T, int Dimensions>
Vec<T> copy_of(const Array<T, Dimensions>& array) {
  return {array.view().begin(), array.view().end()};
}

// Signals are handled in the middle of additions and searches.
void add(SharedTree& tree, const Column<int64_t>& slots, const Table<float>& vectors) {
  require_columns(tree, vectors);
  if (vectors.rows() != slots.size()) {
    throw std::invalid_argument(std::to_string(slots.size()) + " slots have " +
                                std::to_string(vectors.rows()) + " vectors; each needs one");
  }
  const Vec<int64_t> own_slots = copy_of(slots);
  const Vec<float> own_vectors = copy_of(vectors);
  Meter poll{nb::none()};
  without_gil([&] { tree.add(own_slots, own_vectors, &poll); });
}

void remove(SharedTree& tree, const Column<int64_t>& slots) {
  const Vec<int64_t> own_slots = copy_of(slots);
  Meter poll{nb::none()};
  without_gil([&] { tree.remove(own_slots, &poll); });
}

nb::object query(SharedTree& tree, const Table<float>& vectors, int64_t k) {
  require_columns(tree, vectors);
  if (k < 0) throw std::invalid_argument("k is " + std::to_string(k) + "; it must be >= 0");
  const size_t n = vectors.rows(), width = static_cast<size_t>(k);
  constexpr size_t kMost = size_t{1} << 48;  // places, more than fit in memory
  if (width > kMost / (n + 1)) throw std::bad_alloc();
  const Vec<float> queries = copy_of(vectors);
  Vec<int64_t> slots(n * width);
  Vec<double> distances(n * width);
  Meter poll{nb::none()};
  without_gil([&] { tree.query(queries, width, slots, distances, &poll); });
  return nb::make_tuple(to_numpy(std::move(slots), {n, width}),
                        to_numpy(std::move(distances), {n, width}));
}

nb::object points(const SharedTree& tree) {
  KdTree::Points found = without_gil([&] { return tree.points(); });
  const size_t n = found.slots.size();
  return nb::make_tuple(
      to_numpy(std::move(found.slots)),
      to_numpy(std::move(found.vectors), {n, static_cast<size_t>(tree.dimension())}));
}

}  // namespace

void bind_kd_tree(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const KdTree::SlotError& e) {
      PyErr_SetString(PyExc_KeyError, e.what());
    }
  });
  nb::class_<SharedTree, NeighborIndex>(m, "KdTree")
      .def(nb::init<int64_t, uint32_t>(), nb::arg("dimension"), nb::arg("threads") = 1)
      .def("__len__", [](const SharedTree& t) { return without_gil([&] { return t.size(); }); })
      .def("add", &add, nb::arg("slots"), nb::arg("vectors"))
      .def("remove", &remove, nb::arg("slots"))
      .def("query", &query, nb::arg("vectors"), nb::arg("k"))
      .def("points", &points);
}

}  // namespace dynhac
