#include "core/points/similarity.h"

#include <algorithm>
#include <cmath>

namespace dynhac {

double Similarity::operator()(double distance) const {
  switch (rule) {
    case Rule::kInverse:
      return 1.0 / (1.0 + distance);
    case Rule::kGaussian: {
      const double scaled = distance / sigma;
      return std::exp(-0.5 * scaled * scaled);
    }
    case Rule::kCosine:
      return std::max(1.0 - distance, 0.0);
    case Rule::kDot:
      break;
  }
  return std::max(0.0 - distance, 0.0);
}

}  // namespace dynhac
