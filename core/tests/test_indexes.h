// Neighbour indexes for tests: a scan that can be told to fail, and a KD-tree.

#ifndef DYNHAC_TESTS_TEST_INDEXES_H_
#define DYNHAC_TESTS_TEST_INDEXES_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/neighbors/index.h"
#include "core/neighbors/kd_tree.h"

namespace dynhac::testing {

struct IndexFailure : std::runtime_error {
  IndexFailure() : std::runtime_error("the index failed") {}
};

// Which calls of add, remove and query fail, and how. Calls are counted over all indexes that share
// it.
struct Faults {
  int64_t first = -1;      // the number of the call that fails; negative: none
  bool lasting = false;    // all later calls fail too
  bool after = false;      // a call fails after its work instead of before
  bool destroyed = false;  // the index is not intact afterwards
  int64_t calls = 0;

  bool fails_now() {
    const int64_t call = calls++;
    return first >= 0 && (call == first || (lasting && call > first));
  }
};

using Contents = std::map<int64_t, std::vector<float>>;  // vectors by slot

class TestIndex : public NeighborIndex {
 public:
  virtual Contents contents() const = 0;
};

class ScanIndex : public TestIndex {
 public:
  ScanIndex(size_t dimension, Faults& faults) : dimension_(dimension), faults_(faults) {}

  size_t size() const override { return vectors_.size(); }
  bool intact() const override { return intact_; }
  Contents contents() const override { return vectors_; }

  void add(std::span<const int64_t> slots, std::span<const float> vectors,
           Poll* /*poll*/) override {
    call([&] {
      for (size_t i = 0; i < slots.size(); ++i) {
        const auto row = vectors.subspan(i * dimension_, dimension_);
        const bool added = vectors_.insert({slots[i], {row.begin(), row.end()}}).second;
        if (!added) throw std::logic_error("a slot is there already");
      }
    });
  }

  void remove(std::span<const int64_t> slots, Poll* /*poll*/) override {
    call([&] {
      for (const int64_t slot : slots) {
        if (vectors_.erase(slot) == 0) throw std::logic_error("a slot is not there");
      }
    });
  }

  void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* /*poll*/) override {
    call([&] {
      for (size_t row = 0; row * dimension_ < vectors.size(); ++row) {
        std::vector<std::pair<double, int64_t>> found;
        for (const auto& [slot, vector] : vectors_) {
          double sum = 0;
          for (size_t j = 0; j < dimension_; ++j) {
            const double side = double{vectors[row * dimension_ + j]} - double{vector[j]};
            sum += side * side;
          }
          found.emplace_back(std::sqrt(sum), slot);
        }
        std::sort(found.begin(), found.end());
        found.resize(k, {std::numeric_limits<double>::infinity(), -1});
        for (size_t j = 0; j < k; ++j) {
          distances[row * k + j] = found[j].first;
          slots[row * k + j] = found[j].second;
        }
      }
    });
  }

 private:
  template <class Work>
  void call(Work work) {
    if (!intact_) throw std::logic_error("an index that is not intact is used");
    const bool fails = faults_.fails_now();
    if (!fails || faults_.after) work();
    if (!fails) return;
    if (faults_.destroyed) {
      intact_ = false;
      vectors_.clear();
    }
    throw IndexFailure();
  }

  size_t dimension_;
  Faults& faults_;
  bool intact_ = true;
  Contents vectors_;
};

class TreeIndex : public TestIndex {
 public:
  explicit TreeIndex(size_t dimension) : tree_(static_cast<int64_t>(dimension)) {}

  size_t size() const override { return static_cast<size_t>(tree_.size()); }
  bool intact() const override { return tree_.intact(); }
  void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) override {
    tree_.add(slots, vectors, poll);
  }
  void remove(std::span<const int64_t> slots, Poll* poll) override { tree_.remove(slots, poll); }
  void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* poll) override {
    tree_.query(vectors, k, slots, distances, poll);
  }

  Contents contents() const override {
    const KdTree::Points points = tree_.points();
    const auto dimension = static_cast<ptrdiff_t>(tree_.dimension());
    Contents contents;
    auto row = points.vectors.begin();
    for (const int64_t slot : points.slots) {
      contents[slot] = {row, row + dimension};
      row += dimension;
    }
    return contents;
  }

 private:
  KdTree tree_;
};

enum class IndexKind { kScan, kTree };

// Chooses indexes of one kind, good for twice the points, and keeps a record of it.
class TestChooser : public IndexChooser {
 public:
  struct Call {
    size_t dimension, n_points;
    std::string before;
    bool outgrown;
    bool operator==(const Call&) const = default;
  };

  explicit TestChooser(IndexKind kind) : kind(kind) {}

  IndexChoice choose(size_t dimension, size_t n_points, const std::string& before,
                     bool outgrown) override {
    calls.push_back({dimension, n_points, before, outgrown});
    if (fails) throw IndexFailure();
    IndexChoice choice;
    choice.max_points = 2 * static_cast<int64_t>(n_points);
    choice.name = kind == IndexKind::kScan ? "scan" : "tree";
    if (outgrown && keeps) return choice;
    if (kind == IndexKind::kScan) {
      choice.index = std::make_shared<ScanIndex>(dimension, faults);
    } else {
      choice.index = std::make_shared<TreeIndex>(dimension);
    }
    return choice;
  }

  IndexKind kind;
  bool keeps = false;  // an index that is outgrown is kept
  bool fails = false;
  Faults faults;
  std::vector<Call> calls;
};

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_TEST_INDEXES_H_
