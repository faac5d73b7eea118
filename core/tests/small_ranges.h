// Small inputs in parallel: they are cut into many ranges.

#ifndef DYNHAC_TESTS_SMALL_RANGES_H_
#define DYNHAC_TESTS_SMALL_RANGES_H_

#include <cstddef>

#include "core/base/parallel.h"

namespace dynhac::testing {

// While it lives, ranges are this many times smaller.
class SmallRanges {
 public:
  explicit SmallRanges(size_t divisor) { internal::range_divisor.store(divisor); }
  ~SmallRanges() { internal::range_divisor.store(1); }
};

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_SMALL_RANGES_H_
