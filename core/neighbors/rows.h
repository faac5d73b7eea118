// Vectors as an index is given them, and access to those that somebody else holds: an index that
// only needs the vectors of a few candidates reads them there, and keeps no copy.

#ifndef DYNHAC_NEIGHBORS_ROWS_H_
#define DYNHAC_NEIGHBORS_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace dynhac {

class VectorRows {
 public:
  virtual ~VectorRows() = default;
  // The vector of a slot that an index holds, or is about to add. The pointer is valid until
  // vectors are added. Threads may call it at the same time.
  virtual const float* row(int64_t slot) const = 0;
};

// Throws std::invalid_argument, which names the first number that is not finite.
void require_finite(std::span<const float> vectors, size_t dimension);

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_ROWS_H_
