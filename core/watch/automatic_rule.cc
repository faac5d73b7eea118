#include "core/watch/automatic_rule.h"

#include <algorithm>

namespace dynhac {

void AutomaticRule::start(const NodeStore& nodes, Vec<NodeRef>& roots) {
  slots_.assign(nodes.slots(), Slot());
  const Vec<NodeRef> tops = nodes.roots();
  Vec<NodeRef> order = tops;  // parents before their children
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = nodes[order[i]];
    if (node.is_leaf()) continue;
    for (const NodeRef child : {node.left, node.right}) {
      slots_[child].parent = order[i];
      order.push_back(child);
    }
  }
  for (size_t i = order.size(); i-- > 0;) {
    slots_[order[i]].branch = branch_of(nodes[order[i]], order[i]);
  }
  for (const NodeRef top : tops) {
    if (is_root_kept(slots_[top].branch, min_size_)) {
      roots.push_back(top);
    } else {
      visit_clusters(top, nodes, [&](NodeRef n, bool is_cluster) {
        if (is_cluster) roots.push_back(n);
      });
    }
  }
}

Branch AutomaticRule::branch_of(const Node& node, NodeRef n) const {
  if (node.is_leaf()) return Branch();
  return merged(slots_[node.left].branch, slots_[node.right].branch,
                {n, node.similarity * resolution_, node.least_merge * resolution_}, min_size_);
}

// Of a subtree that is not covered: calls visit(n, true) for the clusters in it and visit(n, false)
// for the subtrees in none, from left to right.
template <class Visitor>
void AutomaticRule::visit_clusters(NodeRef n, const NodeStore& nodes, Visitor&& visit) {
  inside_.assign(1, {n, kNone});
  while (!inside_.empty()) {
    const auto [top, root] = inside_.back();
    inside_.pop_back();
    const Branch& branch = slots_[top].branch;
    if (root != kNone || branch.end == kNone) {
      visit(top, root != kNone);
      continue;
    }
    const bool is_split = branch.end == top;
    const NodeRef left = nodes[top].left, right = nodes[top].right;
    inside_.push_back({right, is_split && branch.keep_right ? right : kNone});
    inside_.push_back({left, is_split && branch.keep_left ? left : kNone});
  }
}

// Touched nodes and the subtrees beside them are far apart in memory.
void AutomaticRule::prefetch(NodeRef n, const Node& node) const {
  __builtin_prefetch(slots_.data() + n);
  const Children children = Children::of(node);
  if (children.left == kNone) return;
  __builtin_prefetch(slots_.data() + children.left);
  __builtin_prefetch(slots_.data() + children.right);
}

void AutomaticRule::add_affected(NodeRef n, const Node& before, const Node& now) {
  affected_.push_back({n, Children::of(before), Children::of(now), slots_[n].branch,
                       before.size > 0, now.size > 0});
  slots_[n].place = static_cast<uint32_t>(affected_.size() - 1);
}

void AutomaticRule::find(const Difference& difference, const NodeStore& nodes, FlatChange& change) {
  if (slots_.size() < nodes.slots()) slots_.resize(nodes.slots());
  for (const Difference::Touched& t : difference.touched()) prefetch(t.n, nodes[t.n]);
  affected_.reserve(difference.touched().size());  // abandon() needs all of them or none
  for (const Difference::Touched& t : difference.touched()) add_affected(t.n, t.before, nodes[t.n]);
  touched_ = affected_.size();
  set_parents();
  for (size_t i = 0; i < affected_.size(); ++i) {
    const NodeRef parent = slots_[affected_[i].n].parent;
    if (parent != kNone && slots_[parent].place == kNone) {
      add_affected(parent, nodes[parent], nodes[parent]);
    }
  }
  update_branches(nodes);
  find_tops();
  walk<false>(change);
  walk<true>(change);
  compare(nodes, change);
}

// The children of touched nodes lose the parents that they had, then get those that they have now.
void AutomaticRule::set_parents() noexcept {
  for (size_t i = 0; i < touched_; ++i) disown(affected_[i].before);
  for (size_t i = 0; i < touched_; ++i) adopt(affected_[i].now, affected_[i].n);
}

void AutomaticRule::disown(const Children& children) noexcept {
  if (children.left == kNone) return;
  slots_[children.left].parent = slots_[children.right].parent = kNone;
}

void AutomaticRule::adopt(const Children& children, NodeRef parent) noexcept {
  if (children.left == kNone) return;
  slots_[children.left].parent = slots_[children.right].parent = parent;
}

void AutomaticRule::update_branches(const NodeStore& nodes) {
  for (const Affected& a : affected_) {
    if (nodes[a.n].size > 0) by_size_.push_back({nodes[a.n].size, a.n});
  }
  std::sort(by_size_.begin(), by_size_.end(),
            [](const Sized& a, const Sized& b) { return a.size < b.size; });
  for (const auto& [size, n] : by_size_) slots_[n].branch = branch_of(nodes[n], n);
}

void AutomaticRule::find_tops() {
  auto affected = [&](NodeRef n) -> Affected* {
    return n == kNone || slots_[n].place == kNone ? nullptr : &affected_[slots_[n].place];
  };
  for (const Affected& a : affected_) {
    for (const NodeRef n : {a.before.left, a.before.right}) {
      if (Affected* child = affected(n)) child->top_before = false;
    }
    for (const NodeRef n : {a.now.left, a.now.right}) {
      if (Affected* child = affected(n)) child->top_now = false;
    }
  }
}

// Finds the clusters of one of the two dendrograms whose roots are affected, and the cover of the
// unaffected subtrees below and of affected leaves.
template <bool kNow>
void AutomaticRule::walk(FlatChange& change) {
  auto branch = [&](const Affected& a) -> const Branch& {
    return kNow ? slots_[a.n].branch : a.branch_before;
  };
  for (const Affected& top : affected_) {
    if (!(kNow ? top.top_now : top.top_before)) continue;
    stack_.push_back({top.n, is_root_kept(branch(top), min_size_) ? top.n : kNone});
    while (!stack_.empty()) {
      const auto [n, root] = stack_.back();
      stack_.pop_back();
      const uint32_t place = slots_[n].place;
      const Affected* a = place == kNone ? nullptr : &affected_[place];
      const Children children = a == nullptr ? Children() : kNow ? a->now : a->before;
      if (a != nullptr && root == n) (kNow ? change.roots_now : change.roots_before).push_back(n);
      if (children.left == kNone) {
        Atom& atom = change.atom(n, slots_[n].branch.size);
        (kNow ? atom.root_now : atom.root_before) = root;
        (kNow ? atom.seen_now : atom.seen_before) = true;
        continue;
      }
      NodeRef left_root = root, right_root = root;
      if (root == kNone && branch(*a).end == n) {
        if (branch(*a).keep_left) left_root = children.left;
        if (branch(*a).keep_right) right_root = children.right;
      }
      stack_.push_back({children.right, right_root});
      stack_.push_back({children.left, left_root});
    }
  }
}

// Decides about the unaffected subtrees, whose records are the same before and now.
void AutomaticRule::compare(const NodeStore& nodes, FlatChange& change) {
  const size_t seen = change.atoms.size();
  for (size_t i = 0; i < seen; ++i) {
    Atom& a = change.atoms[i];
    if (slots_[a.n].place != kNone) continue;  // a leaf
    // One that is below an affected node on one side only is a tree of its own on the other.
    const NodeRef alone = is_root_kept(slots_[a.n].branch, min_size_) ? a.n : kNone;
    if (!a.seen_before) a.root_before = alone;
    if (!a.seen_now) a.root_now = alone;
    const bool same = a.root_before == a.root_now && (a.root_now == kNone || a.root_now == a.n);
    const bool divided = (a.root_before == kNone) != (a.root_now == kNone);
    if (!same && a.root_before == a.n) change.roots_before.push_back(a.n);
    if (!same && a.root_now == a.n) change.roots_now.push_back(a.n);
    const Atom whole = a;
    if (same || divided) a.size = 0;
    if (divided) divide(whole, nodes, change);
  }
}

void AutomaticRule::divide(const Atom& whole, const NodeStore& nodes, FlatChange& change) {
  const bool covered_now = whole.root_now != kNone;
  visit_clusters(whole.n, nodes, [&](NodeRef n, bool is_cluster) {
    Atom part = {n, nodes[n].size, whole.root_before, whole.root_now};
    if (is_cluster) {
      (covered_now ? part.root_before : part.root_now) = n;
      (covered_now ? change.roots_before : change.roots_now).push_back(n);
    }
    change.atoms.push_back(part);
  });
}

void AutomaticRule::commit() noexcept {
  for (const Affected& a : affected_) slots_[a.n].place = kNone;
  touched_ = 0;
  recycle(affected_);
  recycle(by_size_);
  recycle(stack_);
  recycle(inside_);
}

void AutomaticRule::abandon() noexcept {
  for (size_t i = 0; i < touched_; ++i) disown(affected_[i].now);
  for (size_t i = 0; i < touched_; ++i) adopt(affected_[i].before, affected_[i].n);
  for (const Affected& a : affected_) slots_[a.n].branch = a.branch_before;
  commit();
}

}  // namespace dynhac
