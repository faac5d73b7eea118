// How much two clusterings share: the leaves that an old and a new cluster have in common.
//
// Whoever hands identities on from old clusters to new ones lists what they share piece by piece,
// sums it up, and gives the largest overlaps the choice first.

#ifndef DYNHAC_WATCH_OVERLAP_H_
#define DYNHAC_WATCH_OVERLAP_H_

#include <algorithm>

#include "core/base/memory.h"

namespace dynhac {

struct Overlap {
  uint32_t old, now;  // whatever the two sides are numbered by
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
