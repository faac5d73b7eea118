// The automatic clusters (core/selection/branch.h), kept up to date.
//
// Every node has its Branch, which follows from its merge and its children, and its parent. An
// update touches some nodes; what it *affects* are these and all their ancestors. So affected nodes
// are closed upwards, before and now: an untouched node has the same children in both dendrograms.
// Their records are computed anew, the smaller ones first; all others still hold.
//
// Whether a node is *covered*, by which cluster, follows from its ancestors: a root of a tree by
// the rule for roots, a child of a split by what the split keeps, others as their parents. So two
// walks down the affected nodes, with the records of before and of now, tell the cover of the
// unaffected subtrees below them.
// - Not covered before and now: it contains the same clusters in both.
// - Covered before and now: it is an atom.
// - Covered on one side only: it is divided into the clusters that it has inside on the other side,
//   and noise. All of these leaves change their label, except at most those of one cluster.
//
// The rule for roots looks at the record of the root only, so that trees that an update did not
// touch stay as they are.
//
// Invariant: a slot that is not in use has no parent, and nothing has it as its parent. A record of
// such a slot means nothing.

#ifndef DYNHAC_WATCH_AUTOMATIC_RULE_H_
#define DYNHAC_WATCH_AUTOMATIC_RULE_H_

#include "core/selection/branch.h"
#include "core/watch/flat_rule.h"

namespace dynhac {

class AutomaticRule : public FlatRule {
 public:
  AutomaticRule(double resolution, uint32_t min_size)
      : resolution_(resolution), min_size_(min_size) {}

  void start(const NodeStore& nodes, Vec<NodeRef>& roots) override;
  void find(const Difference& difference, const NodeStore& nodes, FlatChange& change) override;
  void commit() noexcept override;
  void abandon() noexcept override;

 private:
  struct Slot {
    Branch branch;
    NodeRef parent = kNone;
    uint32_t place = kNone;  // in affected_, kNone if it is not affected
  };
  struct Children {
    NodeRef left = kNone, right = kNone;  // kNone: a leaf, or it does not exist

    static Children of(const Node& node) {
      return node.size == 0 || node.is_leaf() ? Children() : Children{node.left, node.right};
    }
  };
  struct Affected {
    NodeRef n;
    Children before, now;
    Branch branch_before;
    bool top_before, top_now;  // exists, without a parent
  };
  struct Sized {
    uint32_t size;
    NodeRef n;
  };
  struct Visit {
    NodeRef n, root;
  };

  Branch branch_of(const Node& node, NodeRef n) const;
  void prefetch(NodeRef n, const Node& node) const;
  void add_affected(NodeRef n, const Node& before, const Node& now);
  void set_parents() noexcept;
  void adopt(const Children& children, NodeRef parent) noexcept;
  void disown(const Children& children) noexcept;
  void update_branches(const NodeStore& nodes);
  void find_tops();
  template <bool kNow>
  void walk(FlatChange& change);
  void compare(const NodeStore& nodes, FlatChange& change);
  void divide(const Atom& atom, const NodeStore& nodes, FlatChange& change);
  template <class Visitor>
  void visit_clusters(NodeRef n, const NodeStore& nodes, Visitor&& visit);

  const double resolution_;
  const uint32_t min_size_;
  Vec<Slot> slots_;  // by node; there may be more than the nodes have
  // Of the update in progress.
  size_t touched_ = 0;  // how many of affected_; the others are ancestors
  Vec<Affected> affected_;
  Vec<Sized> by_size_;
  Vec<Visit> stack_;
  Vec<Visit> inside_;
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_AUTOMATIC_RULE_H_
