#include "bindings/kd_tree.h"

#include <mutex>
#include <new>
#include <shared_mutex>
#include <stdexcept>

#include "bindings/arrays.h"
#include "core/kd_tree.h"

namespace dynhac {
namespace {

constexpr size_t kQuick = 64;  // rows that are dealt with before another thread could get the GIL

template <class T, int Dimensions>
Vec<T> copy_of(const Array<T, Dimensions>& array) {
  return {array.view().begin(), array.view().end()};
}

// A tree that threads may share. Whoever has the lock never waits for the GIL. Arrays are copied:
// another thread may write to them between the tree's looking at a number and its using it.
class SharedTree {
 public:
  explicit SharedTree(int64_t dimension) : tree_(dimension) {}

  int64_t size() const {
    return without_gil([&] {
      const std::shared_lock lock(mutex_);
      return tree_.size();
    });
  }

  void add(const Column<int64_t>& slots, const Table<float>& vectors) {
    const Vec<int64_t> own_slots = copy_of(slots);
    const Vec<float> own_vectors = copy_of(vectors);
    changing(slots.size(), [&] { tree_.add(own_slots, own_vectors); });
  }

  void remove(const Column<int64_t>& slots) {
    const Vec<int64_t> own_slots = copy_of(slots);
    changing(slots.size(), [&] { tree_.remove(own_slots); });
  }

  nb::object query(const Table<float>& vectors, int64_t k) const {
    if (k < 0) throw std::invalid_argument("k");
    const size_t n = vectors.rows(), width = static_cast<size_t>(k);
    constexpr size_t kMost = size_t{1} << 48;  // places, more than fit in memory
    if (width > kMost / (n + 1)) throw std::bad_alloc();
    const Vec<float> queries = copy_of(vectors);
    Vec<int64_t> slots(n * width);
    Vec<double> distances(n * width);
    const auto run = [&] {
      const std::shared_lock lock(mutex_);
      tree_.query(queries, width, slots, distances);
    };
    n <= kQuick ? run() : without_gil(run);
    return nb::make_tuple(to_numpy(std::move(slots), {n, width}),
                          to_numpy(std::move(distances), {n, width}));
  }

  nb::object points() const {
    KdTree::Points found = without_gil([&] {
      const std::shared_lock lock(mutex_);
      return tree_.points();
    });
    const size_t n = found.slots.size();
    return nb::make_tuple(
        to_numpy(std::move(found.slots)),
        to_numpy(std::move(found.vectors), {n, static_cast<size_t>(tree_.dimension())}));
  }

 private:
  template <class Call>
  void changing(size_t rows, Call call) {
    const auto run = [&] {
      const std::unique_lock lock(mutex_);
      call();
    };
    rows <= kQuick ? run() : without_gil(run);
  }

  KdTree tree_;
  mutable std::shared_mutex mutex_;
};

}  // namespace

void bind_kd_tree(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const KdTree::SlotError& e) {
      PyErr_SetString(PyExc_KeyError, e.what());
    }
  });
  nb::class_<SharedTree>(m, "KdTree")
      .def(nb::init<int64_t>(), nb::arg("dimension"))
      .def("__len__", &SharedTree::size)
      .def("add", &SharedTree::add, nb::arg("slots"), nb::arg("vectors"))
      .def("remove", &SharedTree::remove, nb::arg("slots"))
      .def("query", &SharedTree::query, nb::arg("vectors"), nb::arg("k"))
      .def("points", &SharedTree::points);
}

}  // namespace dynhac
