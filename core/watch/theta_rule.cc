#include "core/watch/theta_rule.h"

#include <algorithm>

namespace dynhac {

void ThetaRule::start(const NodeStore& nodes, Vec<NodeRef>& roots) {
  Vec<NodeRef> stack = nodes.roots();
  std::ranges::reverse(stack);
  while (!stack.empty()) {
    const NodeRef n = stack.back();
    stack.pop_back();
    if (joins(nodes[n])) {
      roots.push_back(n);
    } else {
      stack.push_back(nodes[n].right);
      stack.push_back(nodes[n].left);
    }
  }
}

void ThetaRule::find(const Difference& difference, const NodeStore&, FlatChange& change) {
  walk<false>(difference, change);
  walk<true>(difference, change);
  // An atom below a dirty node in only one of the dendrograms is a tree of its own in the other.
  for (Atom& a : change.atoms) {
    if (difference.of(a.n) != nullptr) continue;  // a leaf that was added or removed
    if (!a.seen_before) change.roots_before.push_back(a.root_before = a.n);
    if (!a.seen_now) change.roots_now.push_back(a.root_now = a.n);
  }
}

// Walks the dirty nodes of one of the two dendrograms; finds cluster roots and the atoms below.
template <bool kNow>
void ThetaRule::walk(const Difference& difference, FlatChange& change) {
  auto record = [&](NodeRef n) -> const Node& {
    return kNow ? difference.now(n) : difference.before(n);
  };
  recycle(stack_);
  for (const Difference::Touched& t : difference.touched()) {
    if (!(kNow ? t.top_now : t.top_before)) continue;
    // The node is within one cluster before and now, and neither its leaves nor its parent changed.
    // (If it does not join on one of the sides, a clean parent joins on neither: the smallest
    // linkage of the parent is unchanged and at most the node's. The walk starts without a root.)
    if (t.top_before && t.top_now && !t.restructured && joins(t.before) &&
        joins(difference.now(t.n))) {
      continue;
    }
    stack_.push_back({t.n, kNone});
    while (!stack_.empty()) {
      auto [n, root] = stack_.back();
      stack_.pop_back();
      const Node& node = record(n);
      if (root == kNone && joins(node)) {
        root = n;
        (kNow ? change.roots_now : change.roots_before).push_back(n);
      }
      if (difference.of(n) != nullptr && !node.is_leaf()) {
        stack_.push_back({node.right, root});
        stack_.push_back({node.left, root});
      } else if (root != kNone) {
        Atom& a = change.atom(n, node.size);
        (kNow ? a.root_now : a.root_before) = root;
        (kNow ? a.seen_now : a.seen_before) = true;
      }
    }
  }
}

}  // namespace dynhac
