// Distances between vectors, as they are reported and compared.
//
// A distance is computed in double, always in the same order of operations: it depends neither on
// the processor, nor on which of the two vectors comes first, nor on the index that found the pair.
// Sums of more than 8 numbers are added as NumPy does: of more than 128, the sum of the first half,
// rounded down to a multiple of 8, and of the rest are added. Squares and products of float32 do
// not overflow.
// Equal vectors have distance exactly 0, but for inner products, and for zero vectors with cosine.
//
// For cosine, vectors are *prepared*: scaled to length 1 and rounded to float32, as some indexes
// hold them; a zero vector stays zero. For the other metrics a vector is prepared as it is.

#ifndef DYNHAC_NEIGHBORS_METRIC_H_
#define DYNHAC_NEIGHBORS_METRIC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/memory.h"
#include "core/neighbors/kernels.h"

namespace dynhac {

enum class Metric : uint8_t {
  kEuclidean,     // the length of the difference
  kCosine,        // 1 minus the cosine of the angle; a zero vector has distance 1 from every vector
  kInnerProduct,  // minus the inner product
};

// What a vector is divided by to be prepared for cosine: its length, or 1 if that is 0.
double divisor(std::span<const float> vector, const Kernel& kernel);

void scale_to_length_1(std::span<const float> vector, const Kernel& kernel, float* scaled);

// Of prepared vectors of the same dimension.
double distance(Metric metric, std::span<const float> a, std::span<const float> b,
                const Kernel& kernel);

// Distances from one vector to others, none of them prepared.
class DistanceFrom {
 public:
  // The vector must outlive it.
  DistanceFrom(Metric metric, std::span<const float> vector, const Kernel& kernel);

  double to(const float* other) const;

  // The distance from every vector, if it is the same for all: that of a zero vector.
  std::optional<double> to_all() const { return to_all_; }

 private:
  Metric metric_;
  const Kernel* kernel_;
  Vec<float> scaled_;              // for cosine
  std::span<const float> vector_;  // prepared
  double square_ = 0;              // of the length of scaled_
  std::optional<double> to_all_;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_METRIC_H_
