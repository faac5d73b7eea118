#include "core/watch/difference.h"

namespace dynhac {

void Difference::find(const NodeStore& nodes) {
  for (const Touched& t : touched_) {
    if (t.n < index_.size()) index_[t.n] = kNone;
  }
  recycle(touched_);
  nodes_ = &nodes;
  nodes.touched([&](NodeRef n, const Node& before) { touched_.push_back({n, before}); });
  index_.resize(nodes.slots(), kNone);  // after a rollback there may be fewer slots
  for (uint32_t i = 0; i < touched_.size(); ++i) index_[touched_[i].n] = i;

  parent_before_.assign(touched_.size(), kNone);
  parent_now_.assign(touched_.size(), kNone);
  auto adopt = [&](Vec<uint32_t>& parents, const Node& node, uint32_t i) {
    if (node.size == 0 || node.is_leaf()) return;
    for (const NodeRef child : {node.left, node.right}) {
      if (index_[child] != kNone) parents[index_[child]] = i;
    }
  };
  for (uint32_t i = 0; i < touched_.size(); ++i) {
    adopt(parent_before_, touched_[i].before, i);
    adopt(parent_now_, nodes[touched_[i].n], i);
  }
  mark_restructured();
  for (Touched& t : touched_) {
    t.dirty = t.restructured || t.before.least_merge != nodes[t.n].least_merge;
  }
  for (uint32_t i = 0; i < touched_.size(); ++i) {
    Touched& t = touched_[i];
    auto top = [&](const Node& node, uint32_t parent) {
      return t.dirty && node.size > 0 && (parent == kNone || !touched_[parent].dirty);
    };
    t.top_before = top(t.before, parent_before_[i]);
    t.top_now = top(nodes[t.n], parent_now_[i]);
  }
}

// Marks nodes that were created or removed or have other children, then all their ancestors. A
// parent with the same two children as before is their parent before and now, so that the parents
// of now suffice.
void Difference::mark_restructured() {
  worklist_.clear();
  auto mark = [&](uint32_t i) {
    if (touched_[i].restructured) return;
    touched_[i].restructured = true;
    worklist_.push_back(i);
  };
  for (uint32_t i = 0; i < touched_.size(); ++i) {
    const Node &before = touched_[i].before, &now = (*nodes_)[touched_[i].n];
    if (before.size == 0 && now.size == 0) continue;  // created and removed within the update
    if (before.size == 0 || now.size == 0 || before.left != now.left || before.right != now.right) {
      mark(i);
    }
  }
  while (!worklist_.empty()) {
    const uint32_t parent = parent_now_[worklist_.back()];
    worklist_.pop_back();
    if (parent != kNone) mark(parent);
  }
}

}  // namespace dynhac
