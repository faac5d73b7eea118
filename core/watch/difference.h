// How the dendrogram of an update in progress differs from the one before it.
//
// The saved copies of a NodeStore tell which records were touched. Flat clusters depend only on the
// leaves below a node and on the smallest linkage there, which a touched node may still share with
// its saved copy.
// - A node is *restructured* if it was created or removed, has other children, or has a
//   restructured child. So a node that is not restructured has the same subtree as before.
// - It is *dirty* if it is restructured or its smallest linkage has changed.
// A restructured node has no parent, or a restructured one, before as well as now. A node that is
// dirty without being restructured may have a clean parent.

#ifndef DYNHAC_WATCH_DIFFERENCE_H_
#define DYNHAC_WATCH_DIFFERENCE_H_

#include "core/base/memory.h"
#include "core/hierarchy/node_store.h"

namespace dynhac {

class Difference {
 public:
  struct Touched {
    NodeRef n;
    Node before;  // size 0: did not exist
    bool restructured = false, dirty = false;
    bool top_before = false, top_now = false;  // exists, dirty, without a dirty parent
  };

  // Computes the difference made by the open transaction of `nodes`, which must not change until
  // the next call.
  void find(const NodeStore& nodes);

  const Vec<Touched>& touched() const { return touched_; }

  // The record of a dirty node; nullptr if the node is not dirty.
  const Touched* of(NodeRef n) const {
    const uint32_t at = n < index_.size() ? index_[n] : kNone;
    return at == kNone || !touched_[at].dirty ? nullptr : &touched_[at];
  }
  const Node& before(NodeRef n) const {
    const Touched* t = of(n);
    return t == nullptr ? (*nodes_)[n] : t->before;
  }
  const Node& now(NodeRef n) const { return (*nodes_)[n]; }

 private:
  void mark_restructured();

  const NodeStore* nodes_ = nullptr;
  Vec<Touched> touched_;
  Vec<uint32_t> index_;  // by node: place in touched_, kNone for all others
  Vec<uint32_t> parent_before_, parent_now_, worklist_;
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_DIFFERENCE_H_
