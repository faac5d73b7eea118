// Neighbour indexes that are written in Python, behind the interface of the core.
//
// The core calls them without the interpreter lock; they take it for the time of a call.

#ifndef DYNHAC_BINDINGS_PYTHON_INDEX_H_
#define DYNHAC_BINDINGS_PYTHON_INDEX_H_

#include <nanobind/nanobind.h>

#include "core/neighbors/index.h"

namespace dynhac {

class PythonIndex : public NeighborIndex {
 public:
  // `checks_itself`: the index has an attribute `intact`; any other is not intact after an error.
  PythonIndex(nanobind::object index, bool checks_itself);
  ~PythonIndex() override;

  size_t size() const override;
  void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) override;
  void remove(std::span<const int64_t> slots, Poll* poll) override;
  void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* poll) override;
  bool intact() const override { return intact_; }

  const nanobind::object& object() const { return index_; }

 private:
  void query_rows(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
                  std::span<double> distances);
  template <class... Arrays>
  void change(const char* method, const Arrays&... arrays);

  nanobind::object index_;
  const bool checks_itself_;
  const size_t rows_at_once_;  // for one call of `query`, and of `add` where it may be divided
  bool intact_ = true;
};

// Calls a function of Python's that chooses an index: choose(dimension, n_points, before, outgrown)
// returns a tuple (index, name, max_points) of a NeighborIndex or None, a str or None, and an int.
class PythonIndexChooser : public IndexChooser {
 public:
  explicit PythonIndexChooser(nanobind::object choose) : choose_(std::move(choose)) {}
  IndexChoice choose(size_t dimension, size_t n_points, const std::string& before,
                     bool outgrown) override;
  const nanobind::object& function() const { return choose_; }

 private:
  nanobind::object choose_;
};

IndexChoice to_index_choice(nanobind::handle tuple);

}  // namespace dynhac

#endif  // DYNHAC_BINDINGS_PYTHON_INDEX_H_
