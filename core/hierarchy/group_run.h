// SubgraphHAC on one bag: merges the good pairs among some vertices of a level.
//
// Merges are judged against the vertices of the level: everything outside the two clusters to merge
// counts as single vertices, even if the same bag merges some of them. So no merge is good only
// because of another merge that a later rerun could undo.
//
// Linkages of a cluster A of members to vertices outside the bag are bounded, not summed up: with
// e(v) the largest linkage of v to a vertex outside, the linkage of A to any vertex outside is at
// most the mean of e over A, weighted by size, which is exact for a single vertex. The members'
// edges are scanned once; nothing else of the level is read. Weights inside the bag are exact: a
// matrix for small bags, hash maps and heaps for large ones.
//
// First the merges that the bag's groups had before are replayed where they are still good; then
// good pairs are merged, largest linkage first, up to `bound` members per group. Large bags only
// try each member's heaviest edge inside the bag, which keeps them near linear; further merges
// are left to the next level.

#ifndef DYNHAC_HIERARCHY_GROUP_RUN_H_
#define DYNHAC_HIERARCHY_GROUP_RUN_H_

#include <span>

#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/hierarchy/level.h"
#include "core/hierarchy/types.h"

namespace dynhac {

// References within a bag of n members: i < n is member i, n + j is merge j.
struct OldMerge {
  NodeRef node;
  uint32_t a, b;  // kNone: no longer exists. Children come first.
};

struct Merge {
  uint32_t a, b;  // children come first
  uint32_t size;
  uint32_t old;  // the old merge that this one replays, or kNone
  double similarity;
  double least_merge;
  double limit;
};

struct MemberResult {
  double hi;
  Heaviest heaviest;
};

class GroupRun {
 public:
  // The Hot::slot of members[i] must be first_slot + i, and no other vertex of the level may have a
  // slot in that range. Writes results[0, n) and merges[0, return value), at most n - 1 of them.
  uint32_t run(const Level& level, const Rule& rule, std::span<const Vertex> members,
               uint32_t first_slot, std::span<const OldMerge> old, uint32_t bound,
               MemberResult* results, Merge* merges);

  uint64_t edges_read = 0;
  Pace pace;  // of large bags; what it throws ends the run

 private:
  static constexpr uint32_t kDense = 32;  // members of the largest bag that gets a matrix

  struct Pair {
    uint32_t i, j;
    Weight w;
  };
  struct Cluster {  // named after one of its members
    uint32_t size, count, ref;
    double least_merge;
    double external;      // exact largest linkage to outside the bag, while count == 1
    double external_sum;  // sum over the members, each weighted by its size
  };
  class Dense;
  class Sparse;

  void scan(const Level& level, std::span<const Vertex> members, uint32_t first_slot,
            MemberResult* results);
  void run_pair(std::span<const OldMerge> old, MemberResult* results);
  template <class Weights>
  void replay(Weights& weights, std::span<const OldMerge> old);
  template <class Weights>
  uint32_t attempt(Weights& weights, uint32_t a, uint32_t b, double factor, uint32_t old);
  void merge_densely(Dense& weights, uint32_t bound);
  void merge_sparsely(Sparse& weights, uint32_t bound);
  void certify(MemberResult* results);

  double external(const Cluster& c) const {
    return c.count == 1 ? c.external : c.external_sum / c.size;
  }

  // Of the run in progress.
  uint32_t n_ = 0;
  const Rule* rule_ = nullptr;
  const Vertex* members_ = nullptr;
  Merge* merges_ = nullptr;
  uint32_t merged_ = 0;
  Vec<Cluster> clusters_;
  Vec<uint32_t> member_size_;
  Vec<double> external_;  // of every member: largest linkage to outside the bag
  Vec<Pair> pairs_;
  // Buffers.
  Vec<Weight> single_, between_;
  Vec<double> candidates_, slack_, sums_;
  Vec<uint32_t> owner_, now_, top_;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_GROUP_RUN_H_
