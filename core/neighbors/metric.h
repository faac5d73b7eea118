// Distances between vectors, as they are reported and as they are compared.
//
// A distance is computed in double from the vectors as they were given, always in the same order
// of operations: it depends neither on the processor nor on which of the two vectors comes first,
// and squares and products of float32 do not overflow. Equal vectors have distance exactly 0, but
// for inner products, and for zero vectors with cosine.

#ifndef DYNHAC_NEIGHBORS_METRIC_H_
#define DYNHAC_NEIGHBORS_METRIC_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/neighbors/kernels.h"

namespace dynhac {

enum class Metric : uint8_t {
  kEuclidean,     // the length of the difference
  kCosine,        // 1 minus the cosine of the angle; a zero vector has distance 1 from every vector
  kInnerProduct,  // minus the inner product
};

// Distances from one vector, which must outlive it.
class DistanceFrom {
 public:
  DistanceFrom(Metric metric, const float* vector, size_t dimension, const Kernel& kernel)
      : metric_(metric),
        vector_(vector),
        dimension_(dimension),
        kernel_(kernel),
        square_(metric == Metric::kCosine ? kernel.products(vector, vector, dimension) : 0) {}

  double to(const float* other) const {
    if (metric_ == Metric::kEuclidean)
      return std::sqrt(kernel_.squares(vector_, other, dimension_));
    const double product = kernel_.products(vector_, other, dimension_);
    if (metric_ == Metric::kInnerProduct) return 0.0 - product;
    // The square root of a rounded square is the number itself: the cosine of equal vectors is 1.
    const double scale = std::sqrt(square_ * kernel_.products(other, other, dimension_));
    return scale == 0 ? 1 : std::fmax(1 - product / scale, 0);
  }

  // Whether the vector has distance 1 from every vector.
  bool same_to_all() const { return metric_ == Metric::kCosine && square_ == 0; }

 private:
  Metric metric_;
  const float* vector_;
  size_t dimension_;
  const Kernel& kernel_;
  double square_;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_METRIC_H_
