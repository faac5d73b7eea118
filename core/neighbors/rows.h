// Access to vectors that somebody else holds.
//
// An index that only needs the vectors of a few candidates reads them here, and keeps no copy.

#ifndef DYNHAC_NEIGHBORS_ROWS_H_
#define DYNHAC_NEIGHBORS_ROWS_H_

#include <cstdint>

namespace dynhac {

class VectorRows {
 public:
  virtual ~VectorRows() = default;
  // The vector of a slot that an index holds, or is about to add. The pointer is valid until
  // vectors are added. Threads may call it at the same time.
  virtual const float* row(int64_t slot) const = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_ROWS_H_
