#include "bindings/kd_tree.h"

#include <mutex>
#include <new>
#include <shared_mutex>
#include <stdexcept>
#include <string>

#include "bindings/arrays.h"
#include "core/neighbors/kd_tree.h"

namespace dynhac {
namespace {

// What is mostly done before another thread could get the GIL.
constexpr size_t kQuickRows = 64;
constexpr size_t kQuickAnswers = 4'096;

using Reading = std::shared_lock<std::shared_mutex>;
using Writing = std::unique_lock<std::shared_mutex>;

template <class T, int Dimensions>
Vec<T> copy_of(const Array<T, Dimensions>& array) {
  return {array.view().begin(), array.view().end()};
}

// A tree that threads may share. Whoever has the lock never waits for the GIL, and the lock is only
// waited for without it. Arrays are copied: another thread may write to them between the tree's
// looking at a number and its using it.
class SharedTree {
 public:
  explicit SharedTree(int64_t dimension) : tree_(dimension) {}

  int64_t size() const {
    return without_gil([&] {
      const Reading lock(mutex_);
      return tree_.size();
    });
  }

  void add(const Column<int64_t>& slots, const Table<float>& vectors) {
    require_columns(vectors);
    if (vectors.rows() != slots.size()) {
      throw std::invalid_argument(std::to_string(slots.size()) + " slots have " +
                                  std::to_string(vectors.rows()) + " vectors; each needs one");
    }
    const Vec<int64_t> own_slots = copy_of(slots);
    const Vec<float> own_vectors = copy_of(vectors);
    locked<Writing>(slots.size() <= kQuickRows, [&] { tree_.add(own_slots, own_vectors); });
  }

  void remove(const Column<int64_t>& slots) {
    const Vec<int64_t> own_slots = copy_of(slots);
    locked<Writing>(slots.size() <= kQuickRows, [&] { tree_.remove(own_slots); });
  }

  nb::object query(const Table<float>& vectors, int64_t k) const {
    require_columns(vectors);
    if (k < 0) throw std::invalid_argument("k is " + std::to_string(k) + "; it must be >= 0");
    const size_t n = vectors.rows(), width = static_cast<size_t>(k);
    constexpr size_t kMost = size_t{1} << 48;  // places, more than fit in memory
    if (width > kMost / (n + 1)) throw std::bad_alloc();
    const Vec<float> queries = copy_of(vectors);
    Vec<int64_t> slots(n * width);
    Vec<double> distances(n * width);
    locked<Reading>(n <= kQuickRows && n * width <= kQuickAnswers,
                    [&] { tree_.query(queries, width, slots, distances); });
    return nb::make_tuple(to_numpy(std::move(slots), {n, width}),
                          to_numpy(std::move(distances), {n, width}));
  }

  nb::object points() const {
    KdTree::Points found = without_gil([&] {
      const Reading lock(mutex_);
      return tree_.points();
    });
    const size_t n = found.slots.size();
    return nb::make_tuple(
        to_numpy(std::move(found.slots)),
        to_numpy(std::move(found.vectors), {n, static_cast<size_t>(tree_.dimension())}));
  }

 private:
  void require_columns(const Table<float>& vectors) const {
    if (static_cast<int64_t>(vectors.columns()) != tree_.dimension()) {
      throw std::invalid_argument("vectors have " + std::to_string(vectors.columns()) +
                                  " dimensions, but those of the index have " +
                                  std::to_string(tree_.dimension()));
    }
  }

  // What is quick keeps the GIL, unless it would have to wait for the lock.
  template <class Lock, class Call>
  void locked(bool quick, Call call) const {
    if (quick) {
      if (const Lock lock(mutex_, std::try_to_lock); lock.owns_lock()) return call();
    }
    without_gil([&] {
      const Lock lock(mutex_);
      call();
    });
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
