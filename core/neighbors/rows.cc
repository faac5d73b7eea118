#include "core/neighbors/rows.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace dynhac {

void require_finite(std::span<const float> vectors, size_t dimension) {
  const auto wrong =
      std::ranges::find_if_not(vectors, [](float value) { return std::isfinite(value); });
  if (wrong == vectors.end()) return;
  const auto at = static_cast<size_t>(wrong - vectors.begin());
  throw std::invalid_argument("row " + std::to_string(at / dimension) + ", column " +
                              std::to_string(at % dimension) + " is not finite; vectors must be");
}

}  // namespace dynhac
