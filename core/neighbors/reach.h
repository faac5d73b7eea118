// The reach of searches in cells (see cell_search.h), learned for a wanted recall.
//
// A *sample* is a vector of the index, whose nearest vectors were found by a scan of all. Each of
// them needs some reach: with that, the cell that it is in is examined. The reach of the index is
// the smallest that enough of the neighbours of the last kMost samples need: a little more than the
// wanted recall of them, because a sample is not the whole. A sample also tells how many of its
// neighbours the search found that was used at that time: their share is the measured recall.
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
  static constexpr double kExact = 2;       // the reach of an exact search

  // `recall` must be in (0, 1].
  explicit Reach(double recall) : recall_(recall) {}

  double recall() const { return recall_; }
  bool exact() const { return recall_ >= 1; }
  // For searches. Exact, too, while there are few samples.
  double value() const { return value_; }
  // The share of neighbours that were found, 1 if there are no samples.
  double measured() const;

  // How many samples to take, after so many changes of an index of this size: so many that there
  // are kMost new ones when as many vectors have changed as the index has.
  size_t due(size_t changes, size_t size);
  // The next sample takes this place, among kMost.
  size_t count() const { return static_cast<size_t>(state_.count); }

  // Makes room for the sample after the last. `needed`: the reach that each of its neighbours
  // needs, at most kNeighbors; `found`: how many of them the search found. All or nothing.
  void add(std::span<const float> needed, size_t found);
  // Replaces what was found of a sample that is held, by its number modulo kMost.
  void set_found(size_t sample, size_t found) noexcept {
    state_.found[sample] = static_cast<int64_t>(found);
  }
  size_t n_samples() const { return state_.sizes.size(); }
  // Sets the value by the samples.
  void learn();

  // Everything that is saved.
  struct State {
    int64_t count = 0;   // of samples so far
    int64_t credit = 0;  // changes that no sample was taken for, times kMost
    Vec<float> needed;   // kNeighbors for each sample
    Vec<int64_t> sizes, found;
  };
  const State& state() const { return state_; }
  // Throws std::invalid_argument if it is not a state.
  void load(State state);

 private:
  static constexpr size_t kFewest = 64;  // samples to learn from

  double recall_;
  double value_ = kExact;
  State state_;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_REACH_H_
