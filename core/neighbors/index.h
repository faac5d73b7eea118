// What a model of points asks of an index of nearest neighbours.
//
// An index holds vectors under slots: numbers that the model chooses, and uses again after a
// removal. All it answers follows from the vectors it holds and, for an approximate index, from the
// order in which they came; never from chance or the clock.
//
// Saving and loading are not here: an index whose answers follow from its vectors alone is built
// again from them, and any other is saved by the code that knows its type.

#ifndef DYNHAC_NEIGHBORS_INDEX_H_
#define DYNHAC_NEIGHBORS_INDEX_H_

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "core/base/progress.h"
#include "core/neighbors/rows.h"

namespace dynhac {

// An update of an index names a slot that it must not name. The index is unchanged.
struct SlotError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

class NeighborIndex {
 public:
  virtual ~NeighborIndex() = default;

  virtual size_t size() const = 0;

  // Where the vector of every slot can be read that is in the index or being added. An index that
  // is given this, while it is empty, need not keep vectors of its own.
  virtual void read_vectors_from(std::shared_ptr<const VectorRows> /*rows*/) {}

  // `vectors` has a row for every slot. If `add` or `remove` throws, either `size` tells whether
  // the change was made, all of it or nothing, or `intact` is false from then on.
  // They call `poll`, whose phase is kIndexing; there may be none.
  virtual void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) = 0;
  virtual void remove(std::span<const int64_t> slots, Poll* poll) = 0;

  // Writes for every row of `vectors` the k nearest, by distance and then by slot, into k places of
  // `slots` and `distances`; where fewer are found, -1 and infinity. The phase of `poll` is
  // kSearching, and a row is one unit of it.
  virtual void query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
                     std::span<double> distances, Poll* poll) = 0;

  // Whether the index holds what it was told to hold. One that is not intact must not be used.
  virtual bool intact() const = 0;
};

// An index, and how long it will do.
struct IndexChoice {
  std::shared_ptr<NeighborIndex> index;
  std::string name;        // of the backend; empty for an index of the user's own
  int64_t max_points = 0;  // for more points, another index must be chosen
};

// Chooses the index of a model. Throws if there is none to choose.
class IndexChooser {
 public:
  virtual ~IndexChooser() = default;

  // Returns a new, empty index for points of this dimension. `before` is the name of the index that
  // the model had, empty if it had none; `outgrown`: it is replaced because of its max_points, and
  // not because it was lost. If it is outgrown, the choice may have no index: the model
  // then keeps the one that it has.
  virtual IndexChoice choose(size_t dimension, size_t n_points, const std::string& before,
                             bool outgrown) = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_INDEX_H_
