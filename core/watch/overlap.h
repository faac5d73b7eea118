// How much two clusterings overlap: the number of leaves that an old and a new cluster share.
//
// New clusters take over the identities of old ones: list the overlaps piece by piece, sum them up
// by pair, and match the pairs with the largest overlaps first.

#ifndef DYNHAC_WATCH_OVERLAP_H_
#define DYNHAC_WATCH_OVERLAP_H_

#include <algorithm>

#include "core/base/memory.h"

namespace dynhac {

struct Overlap {
  uint32_t old, now;  // indices of an old and of a new cluster
  uint64_t size;

  bool same_pair(const Overlap& o) const { return old == o.old && now == o.now; }
  static bool by_pair(const Overlap& a, const Overlap& b) {
    return a.old != b.old ? a.old < b.old : a.now < b.now;
  }
};

// Every pair once, in order, with the sum of its sizes.
inline void sum_pairs(Vec<Overlap>& overlaps) {
  std::sort(overlaps.begin(), overlaps.end(), Overlap::by_pair);
  size_t pairs = 0;
  for (const Overlap& o : overlaps) {
    if (pairs > 0 && overlaps[pairs - 1].same_pair(o)) {
      overlaps[pairs - 1].size += o.size;
    } else {
      overlaps[pairs++] = o;
    }
  }
  overlaps.resize(pairs, Overlap{});
}

}  // namespace dynhac

#endif  // DYNHAC_WATCH_OVERLAP_H_
