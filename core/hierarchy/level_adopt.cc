// Turns the result of a bag's run into the new groups of the level.
//
// New groups and merges are matched with the images and merges from before, so that a cluster that
// still exists, or its successor, keeps its vertex on the next level and its node in the
// dendrogram:
// - a merge that was replayed, or that joins the same two clusters (or their successors) as an
//   old one, takes over the node of the old one;
// - a group takes over the image with which it shares most leaves, largest overlap first, and
//   with it the node of the image's topmost merge if no other merge has that.

#include <algorithm>

#include "core/hierarchy/level_update.h"

namespace dynhac {

// The most frequent case: one vertex that was alone, or is new, and still is alone. Returns whether
// the bag is such a case.
bool LevelUpdate::adopt_single(const Bag& bag) {
  if (bag.members_end - bag.members != 1 || bag.images_end - bag.images > 1 ||
      bag.old != bag.old_end) {
    return false;
  }
  const Vertex v = members_[bag.members];
  const MemberResult& result = results_[bag.members];
  const bool finished = !rule_.is_heavy(result.heaviest.wmax);
  if (finished && bag.images != bag.images_end) return false;
  Vertex image = kNone;
  if (!finished) {
    const uint32_t taken = bag.images == bag.images_end ? kNone : bag.images;
    const Group group = {0, 1, 0, low_->hot[v].size, taken, false};
    image =
        write_image(group, low_->cold[v].node, low_->cold[v].least_merge, v, has_other_leaves(v));
  }
  write_member(v, image, kNone, result);
  if (!finished) list(v);  // its heaviest neighbour is not in the bag
  return true;
}

// The second most frequent case: a group that repeated all its old merges, and made no others.
bool LevelUpdate::adopt_same(const Bag& bag) {
  const uint32_t n = bag.members_end - bag.members;
  if (n < 2 || bag.images + 1 != bag.images_end || bag.merged + 1 != n ||
      bag.old_end - bag.old != bag.merged) {
    return false;
  }
  // The same merges do not imply the same members: a new vertex may have taken over the node of a
  // removed one.
  for (uint32_t i = bag.members; i < bag.members_end; ++i) {
    if (low_->role[members_[i]].image != images_[bag.images]) return false;
  }
  const Merge* merges = merges_.data() + bag.members;
  for (uint32_t j = 0; j < bag.merged; ++j) {
    if (merges[j].old != j) return false;
  }
  merge_node_.resize(bag.merged);
  for (uint32_t j = 0; j < bag.merged; ++j) merge_node_[j] = old_merges_[bag.old + j].node;
  write_nodes(bag);
  const Merge& top = merges[bag.merged - 1];
  const Vertex first = members_[bag.members];
  const Group group = {0, n, n + bag.merged - 1, top.size, bag.images, false};
  const Vertex image = write_image(group, merge_node_.back(), top.least_merge, first,
                                   leaves_changed_[bag.merged - 1] != 0);
  for (uint32_t i = 0; i < n; ++i) {
    const Vertex v = members_[bag.members + i];
    write_member(v, image, low_->cold[v].next, results_[bag.members + i]);
  }
  return true;
}

void LevelUpdate::adopt(const Bag& bag) {
  if (adopt_single(bag) || adopt_same(bag)) return;
  form_groups(bag);
  assign_images(bag);
  match_merges(bag);
  for (uint32_t k = bag.old; k < bag.old_end; ++k) {
    if (!old_used_[k - bag.old]) nodes_.discard(old_merges_[k].node);
  }
  write_nodes(bag);

  const uint32_t n = bag.members_end - bag.members;
  for (const Group& group : groups_) {
    Vertex image = kNone;
    if (!group.finished) {
      const Vertex first = members_[bag.members + group.first];
      if (group.ref < n) {
        image = write_image(group, low_->cold[first].node, low_->cold[first].least_merge, first,
                            has_other_leaves(first));
      } else {
        const NodeRef node = merge_node_[group.ref - n];
        image = write_image(group, node, nodes_[node].least_merge, first,
                            leaves_changed_[group.ref - n] != 0);
      }
    }
    for (uint32_t i = group.first; i != kNone; i = group_next_[i]) {
      const Vertex v = members_[bag.members + i];
      const Vertex next = group_next_[i] == kNone ? kNone : members_[bag.members + group_next_[i]];
      write_member(v, image, next, results_[bag.members + i]);
    }
    if (group.count == 1 && !group.finished) {  // it may join a neighbour outside the bag
      const Vertex v = members_[bag.members + group.first];
      const uint32_t at = low_->hot[low_->role[v].best].slot;
      if (at < bag.members || at >= bag.members_end) list(v);
    }
  }
  for (uint32_t k = bag.images; k < bag.images_end; ++k) {
    if (images_[k] != kNone) drop_image(images_[k]);
  }
}

void LevelUpdate::form_groups(const Bag& bag) {
  const uint32_t n = bag.members_end - bag.members;
  const Merge* merges = merges_.data() + bag.members;
  groups_.clear();
  group_of_.resize(n);
  group_next_.assign(n, kNone);
  // By reference: first the top above it, then, for tops, the group.
  ref_group_.resize(n + bag.merged);
  for (uint32_t r = 0; r < n + bag.merged; ++r) ref_group_[r] = r;
  for (uint32_t j = bag.merged; j-- > 0;) {
    ref_group_[merges[j].a] = ref_group_[merges[j].b] = ref_group_[n + j];
  }
  for (uint32_t i = 0; i < n; ++i) group_of_[i] = ref_group_[i];
  std::fill(ref_group_.begin(), ref_group_.end(), kNone);
  group_last_.resize(n);  // by group: its last member so far
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t top = group_of_[i];
    uint32_t& g = ref_group_[top];
    const uint32_t size = low_->hot[members_[bag.members + i]].size;
    if (g == kNone) {
      g = static_cast<uint32_t>(groups_.size());
      groups_.push_back({i, 0, top, 0, kNone, false});
    } else {
      group_next_[group_last_[g]] = i;
    }
    group_last_[g] = i;
    group_of_[i] = g;
    ++groups_[g].count;
    groups_[g].size += size;
    if (top == i) {
      groups_[g].finished = !rule_.is_heavy(results_[bag.members + i].heaviest.wmax);
    }
  }
}

void LevelUpdate::assign_images(const Bag& bag) {
  for (uint32_t k = bag.images; k < bag.images_end; ++k) high_->hot[images_[k]].slot = k;
  overlaps_.clear();
  const uint32_t n = bag.members_end - bag.members;
  for (uint32_t i = 0; i < n; ++i) {
    const Vertex v = members_[bag.members + i], image = low_->role[v].image;
    if (image == kNone || groups_[group_of_[i]].finished) continue;
    overlaps_.push_back({high_->hot[image].slot, group_of_[i], low_->hot[v].size});
  }
  for (uint32_t k = bag.images; k < bag.images_end; ++k) high_->hot[images_[k]].slot = kNone;
  sum_pairs(overlaps_);
  std::sort(overlaps_.begin(), overlaps_.end(), [](const Overlap& a, const Overlap& b) {
    return a.size != b.size ? a.size > b.size : Overlap::by_pair(a, b);
  });
  image_taken_.assign(bag.images_end - bag.images, 0);
  for (const Overlap& o : overlaps_) {
    uint8_t& taken = image_taken_[o.old - bag.images];
    if (groups_[o.now].image_index != kNone || taken) continue;
    groups_[o.now].image_index = o.old;
    taken = 1;
  }
}

void LevelUpdate::match_merges(const Bag& bag) {
  const uint32_t n = bag.members_end - bag.members, old = bag.old_end - bag.old;
  const Merge* merges = merges_.data() + bag.members;
  const OldMerge* olds = old_merges_.data() + bag.old;
  merge_node_.assign(bag.merged, kNone);
  old_used_.assign(old, 0);
  uint32_t unnamed = bag.merged, unused = old;
  auto name = [&](uint32_t j, uint32_t k) {
    merge_node_[j] = olds[k].node;
    old_used_[k] = 1;
    --unnamed;
    --unused;
  };
  for (uint32_t j = 0; j < bag.merged; ++j) {
    if (merges[j].old != kNone) name(j, merges[j].old);
  }
  if (unnamed == 0 || unused == 0) return;

  // What remains of an old cluster: if one side of its merge no longer exists, the other side.
  auto old_pair = [](uint32_t a, uint32_t b) {
    return static_cast<uint64_t>(std::min(a, b)) << 32 | std::max(a, b);
  };
  old_remainder_.resize(old);
  old_pairs_.clear();
  for (uint32_t k = 0; k < old; ++k) {
    auto resolve = [&](uint32_t ref) {
      return ref == kNone || ref < n ? ref : old_remainder_[ref - n];
    };
    const uint32_t a = resolve(olds[k].a), b = resolve(olds[k].b);
    old_remainder_[k] = a == kNone ? b : b == kNone ? a : n + k;
    if (a != kNone && b != kNone && !old_used_[k]) old_pairs_.push_back({old_pair(a, b), k});
  }
  std::sort(old_pairs_.begin(), old_pairs_.end());
  // The old cluster that a new one succeeds. New members have no predecessor, and a cluster that
  // they join keeps its own.
  predecessor_.resize(n + bag.merged);
  for (uint32_t i = 0; i < n; ++i) {
    predecessor_[i] = low_->role[members_[bag.members + i]].image == kNone ? kNone : i;
  }
  auto size_of = [&](uint32_t ref) {
    return ref < n ? low_->hot[members_[bag.members + ref]].size : merges[ref - n].size;
  };
  for (uint32_t j = 0; j < bag.merged; ++j) {
    const uint32_t a = predecessor_[merges[j].a], b = predecessor_[merges[j].b];
    uint32_t& mine = predecessor_[n + j];
    mine = a == kNone ? b : b == kNone || size_of(merges[j].a) >= size_of(merges[j].b) ? a : b;
    if (merges[j].old != kNone) {
      mine = n + merges[j].old;
    } else if (a != kNone && b != kNone) {
      const auto at = std::lower_bound(old_pairs_.begin(), old_pairs_.end(),
                                       std::pair<uint64_t, uint32_t>{old_pair(a, b), 0});
      if (at == old_pairs_.end() || at->first != old_pair(a, b) || old_used_[at->second]) continue;
      name(j, at->second);
      mine = n + at->second;
    }
  }
  for (const Group& group : groups_) {
    if (group.ref < n || group.image_index == kNone) continue;
    const uint32_t top = image_top_[group.image_index];
    if (merge_node_[group.ref - n] != kNone || top == kNone || old_used_[top]) continue;
    name(group.ref - n, top);
  }
}

void LevelUpdate::write_nodes(const Bag& bag) {
  const uint32_t n = bag.members_end - bag.members;
  auto node_of = [&](uint32_t ref) {
    return ref < n ? low_->cold[members_[bag.members + ref]].node : merge_node_[ref - n];
  };
  // A cluster may have other leaves although their number is the same: a node is written whenever a
  // cluster below it has changed, even if its own record stays the same.
  leaves_changed_.resize(bag.merged);
  auto other_leaves = [&](uint32_t ref) {
    return ref < n ? has_other_leaves(members_[bag.members + ref]) : leaves_changed_[ref - n] != 0;
  };
  for (uint32_t j = 0; j < bag.merged; ++j) {
    const Merge& m = merges_[bag.members + j];
    if (merge_node_[j] == kNone) merge_node_[j] = nodes_.create_merge(index_);
    const Node& before = nodes_[merge_node_[j]];
    const NodeRef left = node_of(m.a), right = node_of(m.b);
    leaves_changed_[j] =
        before.left != left || before.right != right || other_leaves(m.a) || other_leaves(m.b);
    if (!leaves_changed_[j] && before.similarity == m.similarity &&
        before.least_merge == m.least_merge) {
      continue;
    }
    Node& node = nodes_.change(merge_node_[j]);
    node.left = left;
    node.right = right;
    node.size = m.size;
    node.similarity = m.similarity;
    node.least_merge = m.least_merge;
  }
}

bool LevelUpdate::has_other_leaves(Vertex v) const {
  const State state = low_->cold[v].state;
  return state == State::kChanged || state == State::kCreated;
}

// Writes the image that was matched with the group, or a new one.
Vertex LevelUpdate::write_image(const Group& group, NodeRef node, double least_merge, Vertex first,
                                bool other_leaves) {
  Vertex image;
  if (group.image_index == kNone) {
    image = high_->create(group.size);
    out_->created.push_back(image);
    high_->cold[image].old_node = node;
  } else {
    image = images_[group.image_index];
    images_[group.image_index] = kNone;
  }
  Hot& h = high_->hot[image];
  const Cold& c = high_->cold[image];
  other_leaves |= h.size != group.size || c.node != node;
  const bool same = !other_leaves && c.least_merge == least_merge;
  if (same && c.first == first && c.count == group.count) return image;
  high_->touch(image);
  Cold& now = high_->cold[image];
  if (!same && now.state != State::kCreated) {
    if (now.state == State::kKept) {
      out_->changed.push_back({image, h.size});
      now.state = State::kAdjusted;
    }
    if (other_leaves) now.state = State::kChanged;
  }
  h.size = group.size;
  now.node = node;
  now.least_merge = least_merge;
  now.first = first;
  now.count = group.count;
  if (now.state == State::kCreated) now.old_node = node;
  return image;
}

void LevelUpdate::write_member(Vertex v, Vertex image, Vertex next, const MemberResult& result) {
  const double hi = image == kNone ? rule_.finished_limit() : result.hi;
  const auto& [wmax, best] = result.heaviest;
  const Cold& c = low_->cold[v];
  if (c.next != next || c.old_node != c.node) {
    low_->touch(v);
    low_->cold[v].next = next;
    low_->cold[v].old_node = c.node;
  }
  const Role& before = low_->role[v];
  if (before.image == image && before.hi == hi &&
      (hi != kInfinity || (before.wmax == wmax && before.best == best))) {
    return;
  }
  if (before.image != image && !(c.flags & kMoved)) {
    moved_.push_back({v, before.image});
    low_->cold[v].flags |= kMoved;
  }
  Role& now = low_->change_role(v);
  now.image = image;
  now.hi = hi;
  now.wmax = wmax;
  now.best = best;
}

void LevelUpdate::drop_image(Vertex image) {
  if (high_->cold[image].state == State::kCreated) {
    high_->discard(image);
    high_->cold[image].state = State::kRemoved;
    return;
  }
  high_->touch(image);
  out_->removed.push_back(image);
  high_->cold[image].state = State::kRemoved;
}

}  // namespace dynhac
