#include "core/points/similarity.h"

#include <algorithm>
#include <cmath>

namespace dynhac {

void SimilarityRule::apply(std::span<double> values, Workers& workers) const {
  constexpr size_t kValues = size_t{1} << 15;  // of one piece of parallel work
  workers.for_ranges(values.size(), kValues, [&](size_t begin, size_t end, uint32_t) {
    for (double& value : values.subspan(begin, end - begin)) value = of(value);
  });
}

double SimilarityRule::of(double distance) const {
  switch (kind_) {
    case Kind::kInverse:
      return 1.0 / (1.0 + distance);
    case Kind::kGaussian: {
      const double scaled = distance / sigma_;
      return std::exp(-0.5 * scaled * scaled);
    }
    case Kind::kCosine:
      return std::max(1.0 - distance, 0.0);
    case Kind::kDot:
      break;
  }
  return std::max(0.0 - distance, 0.0);
}

}  // namespace dynhac
