// The reach of searches in cells (see cell_search.h), learned for a wanted recall.
//
// A *sample* is a vector of the index, whose nearest vectors were found by a scan of all. Searches
// with less and less reach, in steps of 1 / kSteps, tell which reach each of these neighbours needs
// to be found. The reach of the index is what enough of the neighbours of the last kMost samples
// need: a little more than the wanted recall of them, because a sample is not the whole. Their
// share is the measured recall.
//
// For a wanted recall of 1 there is nothing to learn: searches are exact.

#ifndef DYNHAC_NEIGHBORS_REACH_H_
#define DYNHAC_NEIGHBORS_REACH_H_

#include <cstdint>
#include <span>

#include "core/base/memory.h"

namespace dynhac {

class Reach {
 public:
  static constexpr size_t kMost = 512;      // samples
  static constexpr size_t kNeighbors = 32;  // of a sample
  static constexpr size_t kSteps = 64;      // from a reach of 0 to 1
  static constexpr double kExact = 2;       // the reach of an exact search

  // `recall` must be in (0, 1].
  explicit Reach(double recall) : recall_(recall) {}

  double recall() const { return recall_; }
  bool exact() const { return recall_ >= 1; }
  // For searches. Exact, too, while there are few samples.
  double value() const { return value_; }
  // The share of the neighbours of samples that searches find; 1 if there are none.
  double measured() const { return measured_; }

  // How many samples to take, after so many changes of an index of this size: so many that there
  // are kMost new ones when as many vectors have changed as the index has.
  size_t due(size_t changes, size_t size);
  // Of samples so far.
  size_t count() const { return static_cast<size_t>(state_.count); }

  // Adds a sample, in place of the oldest one if there are kMost. `needed`: the reach that each of
  // its neighbours needs, at most kNeighbors. All or nothing.
  void add(std::span<const float> needed);
  // Sets the value by the samples.
  void learn();

  // Everything that is saved.
  struct State {
    int64_t count = 0;   // of samples so far
    int64_t credit = 0;  // changes that no sample was taken for, times kMost
    Vec<float> needed;   // kNeighbors for each sample
    Vec<int64_t> sizes;  // neighbours of each sample
  };
  const State& state() const { return state_; }
  // Throws std::invalid_argument if it is not a state.
  void load(State state);

 private:
  size_t n_samples() const { return state_.sizes.size(); }

  static constexpr size_t kFewest = 64;  // samples to learn from

  double recall_;
  double value_ = kExact;
  double measured_ = 1;
  State state_;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_REACH_H_
