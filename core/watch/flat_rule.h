// Which flat clusters a dendrogram has, and which of them an update changed.
//
// A cluster is a subtree; its topmost node is its *root*. A rule finds the clusters that an update
// may have changed, from the Difference of the dendrograms before and after it, and at a cost that
// depends on the size of that. It describes them by *atoms*: disjoint subtrees, each of them as it
// was before the update, or a leaf that the update added or removed. An atom is within one cluster
// or in none, before as well as now. So old and new clusters can be compared by the atoms that they
// share, and only the leaves of atoms that changed cluster have to be visited.
//
// Invariants of a FlatChange:
// - roots_before has the clusters of before the update that may not be clusters any more, or not
//   the same; roots_now has what there is now in their places. A cluster in neither is unchanged.
// - Every leaf of these clusters is in one atom of size > 0. Atoms of size 0 do not count.

#ifndef DYNHAC_WATCH_FLAT_RULE_H_
#define DYNHAC_WATCH_FLAT_RULE_H_

#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/hierarchy/node_store.h"
#include "core/watch/difference.h"

namespace dynhac {

struct Atom {
  NodeRef n;
  uint32_t size;
  NodeRef root_before = kNone, root_now = kNone;  // of the cluster that it is in; kNone: of none
  bool seen_before = false, seen_now = false;     // by the walks of a rule
};

struct FlatChange {
  Vec<Atom> atoms;
  Vec<NodeRef> roots_before, roots_now;

  // The atom of a node, a new one if need be.
  Atom& atom(NodeRef n, uint32_t size) {
    const auto [at, added] = atom_of_.insert(n, static_cast<uint32_t>(atoms.size()));
    if (added) atoms.push_back({n, size});
    return atoms[*at];
  }

  void clear() {
    recycle(atoms);
    recycle(roots_before);
    recycle(roots_now);
    recycle(atom_of_);
  }

 private:
  FlatMap<uint32_t> atom_of_;  // by node
};

class FlatRule {
 public:
  virtual ~FlatRule() = default;

  // Takes over the present dendrogram and appends the roots of its clusters.
  virtual void start(const NodeStore& nodes, Vec<NodeRef>& roots) = 0;

  // Finds what the open transaction of `nodes` changed. `change` is empty.
  virtual void find(const Difference& difference, const NodeStore& nodes, FlatChange& change) = 0;

  // After find(), also after one that failed: the transaction is committed or rolled back.
  virtual void commit() noexcept {}
  virtual void abandon() noexcept {}
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_FLAT_RULE_H_
