// Turns the results of the bags' runs into the new groups of the level.
//
// New groups and merges are matched with the images and merges from before, so that a cluster that
// still exists, or its successor, keeps its vertex on the next level and its node in the
// dendrogram:
// - a merge that was replayed, or that joins the same two clusters (or their successors) as an
//   old one, takes over the node of the old one;
// - a group takes over the image with which it shares most leaves, largest overlap first, and
//   with it the node of the image's topmost merge if no other merge has that.
//
// First every bag is planned: which groups it has, and which images and nodes these take over. This
// gives the number of those to create, and with it the numbers that every bag creates. Then every
// bag is written. Both steps work on ranges of bags in parallel. What a range adds to common lists
// goes into lists of its own, which are put together in order.

#include <algorithm>

#include "core/base/partition.h"
#include "core/hierarchy/level_update.h"

namespace dynhac {

namespace {

constexpr size_t kBags = 64;  // of one piece of parallel work

}  // namespace

void LevelUpdate::adopt_bags() {
  Workers::ranges(bags_.size(), kBags) > 1 ? adopt_many_bags() : adopt_few_bags();
}

void LevelUpdate::adopt_few_bags() {
  adopted_.clear();
  Adoption a = {scratch_[0], adopted_, moved_, searching_, out_->changed, nodes_.own_journal(), 0};
  for (Bag& bag : bags_) plan(bag, a);
  create_new(std::exchange(adopted_.nodes, 0), std::exchange(adopted_.images, 0));
  for (const Bag& bag : bags_) write(bag, a);
  drop_old(adopted_);
  work(8 * members_.size());
}

void LevelUpdate::adopt_many_bags() {
  const size_t ranges = Workers::ranges(bags_.size(), kBags);
  Vec<Adopted> adopted(ranges);
  Vec<Vec<Moved>> moved(ranges);
  Vec<Vec<Vertex>> listed(ranges);
  Vec<Vec<Changed>> changed(ranges);
  low_->provide(workers_.hands());
  high_->provide(workers_.hands());
  nodes_.provide(ranges);
  auto for_bags = [&](auto body) {
    workers_.for_ranges_numbered(
        bags_.size(), kBags, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
          Adoption a = {scratch_[hand], adopted[range],        moved[range], listed[range],
                        changed[range], nodes_.journal(range), hand};
          for (size_t b = begin; b < end; ++b) body(bags_[b], a);
          if (Workers::is_caller(hand)) {
            work(4 * size_t{bags_[end - 1].members_end - bags_[begin].members});
          }
        });
  };
  for_bags([&](Bag& bag, Adoption& a) { plan(bag, a); });
  uint32_t nodes = 0, images = 0;
  for (Adopted& one : adopted) {
    nodes += std::exchange(one.nodes, nodes);
    images += std::exchange(one.images, images);
  }
  create_new(nodes, images);
  for_bags([&](const Bag& bag, Adoption& a) { write(bag, a); });
  low_->gather();
  high_->gather();
  nodes_.gather();
  append_all(workers_, moved_, moved);
  append_all(workers_, searching_, listed);
  append_all(workers_, out_->changed, changed);
  for (const Adopted& one : adopted) drop_old(one);
}

void LevelUpdate::create_new(uint32_t nodes, uint32_t images) {
  if (nodes > 0) {
    nodes_.create_many(nodes, workers_, new_nodes_);
    first_merge_id_ = nodes_.take_merge_ids(nodes);
  }
  if (images > 0) {
    high_->create_many(images, workers_, new_images_);
    for (uint32_t i = 0; i < images; ++i) out_->created.push_back(new_images_[i]);
  }
}

void LevelUpdate::drop_old(const Adopted& adopted) {
  for (const Vertex image : adopted.dropped) drop_image(image);
  for (const NodeRef n : adopted.unused) nodes_.discard(n);
}

void LevelUpdate::plan(Bag& bag, Adoption& a) {
  if (plan_single(bag, a) || plan_same(bag)) return;
  bag.kind = Kind::kOther;
  form_groups(bag, a.scratch);
  assign_images(bag, a.scratch);
  match_merges(bag, a.scratch);
  for (uint32_t k = bag.old; k < bag.old_end; ++k) {
    if (!a.scratch.old_used[k - bag.old]) a.adopted.unused.push_back(old_merges_[k].node);
  }
  for (uint32_t j = 0; j < bag.merged; ++j)
    a.adopted.nodes += merge_node_[bag.members + j] == kNone;
  for (uint32_t g = 0; g < bag.groups; ++g) {
    const Group& group = groups_[bag.members + g];
    a.adopted.images += !group.finished && group.image_index == kNone;
  }
}

// The most frequent case: one vertex that was alone, or is new, and still is alone. Returns whether
// the bag is such a case.
bool LevelUpdate::plan_single(Bag& bag, Adoption& a) {
  if (bag.members_end - bag.members != 1 || bag.images_end - bag.images > 1 ||
      bag.old != bag.old_end) {
    return false;
  }
  const bool finished = !rule_.is_heavy(results_[bag.members].heaviest.wmax);
  if (finished && bag.images != bag.images_end) return false;
  bag.kind = Kind::kSingle;
  a.adopted.images += !finished && bag.images == bag.images_end;
  return true;
}

// The second most frequent case: a group that repeated all its old merges, and made no others.
bool LevelUpdate::plan_same(Bag& bag) {
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
  for (uint32_t j = 0; j < bag.merged; ++j) {
    if (merges_[bag.members + j].old != j) return false;
  }
  bag.kind = Kind::kSame;
  for (uint32_t j = 0; j < bag.merged; ++j) {
    merge_node_[bag.members + j] = old_merges_[bag.old + j].node;
  }
  return true;
}

void LevelUpdate::write(const Bag& bag, Adoption& a) {
  if (bag.kind == Kind::kSingle) {
    write_single(bag, a);
    return;
  }
  write_nodes(bag, a);
  if (bag.kind == Kind::kSame) {
    write_same(bag, a);
    return;
  }
  const uint32_t n = bag.members_end - bag.members;
  for (uint32_t g = 0; g < bag.groups; ++g) {
    const Group& group = groups_[bag.members + g];
    Vertex image = kNone;
    if (!group.finished) {
      const Vertex first = members_[bag.members + group.first];
      if (group.ref < n) {
        image = write_image(group, low_->cold[first].node, low_->cold[first].least_merge, first,
                            has_other_leaves(first), a);
      } else {
        const uint32_t top = group.ref - n;
        const NodeRef node = merge_node_[bag.members + top];
        image = write_image(group, node, nodes_[node].least_merge, first,
                            a.scratch.leaves_changed[top] != 0, a);
      }
    }
    for (uint32_t i = group.first, next; i != kNone; i = next) {
      next = group_next_[bag.members + i];
      write_member(members_[bag.members + i], image,
                   next == kNone ? kNone : members_[bag.members + next], results_[bag.members + i],
                   a);
    }
    if (group.count == 1 && !group.finished) {  // it may join a neighbour outside the bag
      const Vertex v = members_[bag.members + group.first];
      const uint32_t at = low_->hot[low_->role[v].best].slot;
      if (at < bag.members || at >= bag.members_end) list(v, a);
    }
  }
  for (uint32_t k = bag.images; k < bag.images_end; ++k) {
    if (images_[k] != kNone) a.adopted.dropped.push_back(images_[k]);
  }
}

void LevelUpdate::write_single(const Bag& bag, Adoption& a) {
  const Vertex v = members_[bag.members];
  const MemberResult& result = results_[bag.members];
  if (!rule_.is_heavy(result.heaviest.wmax)) {  // finished
    write_member(v, kNone, kNone, result, a);
    return;
  }
  const uint32_t taken = bag.images == bag.images_end ? kNone : bag.images;
  const Group group = {0, 1, 0, low_->hot[v].size, taken, false};
  const Vertex image =
      write_image(group, low_->cold[v].node, low_->cold[v].least_merge, v, has_other_leaves(v), a);
  write_member(v, image, kNone, result, a);
  list(v, a);  // its heaviest neighbour is not in the bag
}

void LevelUpdate::write_same(const Bag& bag, Adoption& a) {
  const uint32_t n = bag.members_end - bag.members, last = bag.merged - 1;
  const Merge& top = merges_[bag.members + last];
  const Group group = {0, n, n + last, top.size, bag.images, false};
  const Vertex image = write_image(group, merge_node_[bag.members + last], top.least_merge,
                                   members_[bag.members], a.scratch.leaves_changed[last] != 0, a);
  for (uint32_t i = bag.members; i < bag.members_end; ++i) {
    write_member(members_[i], image, low_->cold[members_[i]].next, results_[i], a);
  }
}

void LevelUpdate::list(Vertex v, Adoption& a) {
  if (low_->cold[v].flags & kListed) return;
  low_->cold[v].flags |= kListed;
  a.listed.push_back(v);
}

void LevelUpdate::form_groups(Bag& bag, Scratch& s) {
  const uint32_t n = bag.members_end - bag.members;
  const Merge* merges = merges_.data() + bag.members;
  Group* groups = groups_.data() + bag.members;
  uint32_t* group_next = group_next_.data() + bag.members;
  bag.groups = 0;
  s.group_of.resize(n);
  std::fill(group_next, group_next + n, kNone);
  // By reference: first the top above it, then, for tops, the group.
  s.ref_group.resize(n + bag.merged);
  for (uint32_t r = 0; r < n + bag.merged; ++r) s.ref_group[r] = r;
  for (uint32_t j = bag.merged; j-- > 0;) {
    s.ref_group[merges[j].a] = s.ref_group[merges[j].b] = s.ref_group[n + j];
  }
  for (uint32_t i = 0; i < n; ++i) s.group_of[i] = s.ref_group[i];
  std::fill(s.ref_group.begin(), s.ref_group.end(), kNone);
  s.group_last.resize(n);  // by group: its last member so far
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t top = s.group_of[i];
    uint32_t& g = s.ref_group[top];
    const uint32_t size = low_->hot[members_[bag.members + i]].size;
    if (g == kNone) {
      g = bag.groups++;
      groups[g] = {i, 0, top, 0, kNone, false};
    } else {
      group_next[s.group_last[g]] = i;
    }
    s.group_last[g] = i;
    s.group_of[i] = g;
    ++groups[g].count;
    groups[g].size += size;
    if (top == i) {
      groups[g].finished = !rule_.is_heavy(results_[bag.members + i].heaviest.wmax);
    }
  }
}

void LevelUpdate::assign_images(const Bag& bag, Scratch& s) {
  for (uint32_t k = bag.images; k < bag.images_end; ++k) high_->hot[images_[k]].slot = k;
  s.overlaps.clear();
  Group* groups = groups_.data() + bag.members;
  const uint32_t n = bag.members_end - bag.members;
  for (uint32_t i = 0; i < n; ++i) {
    const Vertex v = members_[bag.members + i], image = low_->role[v].image;
    if (image == kNone || groups[s.group_of[i]].finished) continue;
    s.overlaps.push_back({high_->hot[image].slot, s.group_of[i], low_->hot[v].size});
  }
  for (uint32_t k = bag.images; k < bag.images_end; ++k) high_->hot[images_[k]].slot = kNone;
  sum_pairs(s.overlaps);
  std::sort(s.overlaps.begin(), s.overlaps.end(), [](const Overlap& a, const Overlap& b) {
    return a.size != b.size ? a.size > b.size : Overlap::by_pair(a, b);
  });
  s.image_taken.assign(bag.images_end - bag.images, 0);
  for (const Overlap& o : s.overlaps) {
    uint8_t& taken = s.image_taken[o.old - bag.images];
    if (groups[o.now].image_index != kNone || taken) continue;
    groups[o.now].image_index = o.old;
    taken = 1;
  }
}

void LevelUpdate::match_merges(const Bag& bag, Scratch& s) {
  const uint32_t n = bag.members_end - bag.members, old = bag.old_end - bag.old;
  const Merge* merges = merges_.data() + bag.members;
  const OldMerge* olds = old_merges_.data() + bag.old;
  NodeRef* merge_node = merge_node_.data() + bag.members;
  std::fill(merge_node, merge_node + bag.merged, kNone);
  s.old_used.assign(old, 0);
  uint32_t unnamed = bag.merged, unused = old;
  auto name = [&](uint32_t j, uint32_t k) {
    merge_node[j] = olds[k].node;
    s.old_used[k] = 1;
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
  s.old_remainder.resize(old);
  s.old_pairs.clear();
  for (uint32_t k = 0; k < old; ++k) {
    auto resolve = [&](uint32_t ref) {
      return ref == kNone || ref < n ? ref : s.old_remainder[ref - n];
    };
    const uint32_t a = resolve(olds[k].a), b = resolve(olds[k].b);
    s.old_remainder[k] = a == kNone ? b : b == kNone ? a : n + k;
    if (a != kNone && b != kNone && !s.old_used[k]) s.old_pairs.push_back({old_pair(a, b), k});
  }
  std::sort(s.old_pairs.begin(), s.old_pairs.end());
  // The old cluster that a new one succeeds. New members have no predecessor, and a cluster that
  // they join keeps its own.
  s.predecessor.resize(n + bag.merged);
  for (uint32_t i = 0; i < n; ++i) {
    s.predecessor[i] = low_->role[members_[bag.members + i]].image == kNone ? kNone : i;
  }
  auto size_of = [&](uint32_t ref) {
    return ref < n ? low_->hot[members_[bag.members + ref]].size : merges[ref - n].size;
  };
  for (uint32_t j = 0; j < bag.merged; ++j) {
    const uint32_t a = s.predecessor[merges[j].a], b = s.predecessor[merges[j].b];
    uint32_t& mine = s.predecessor[n + j];
    mine = a == kNone ? b : b == kNone || size_of(merges[j].a) >= size_of(merges[j].b) ? a : b;
    if (merges[j].old != kNone) {
      mine = n + merges[j].old;
    } else if (a != kNone && b != kNone) {
      const auto at = std::lower_bound(s.old_pairs.begin(), s.old_pairs.end(),
                                       std::pair<uint64_t, uint32_t>{old_pair(a, b), 0});
      if (at == s.old_pairs.end() || at->first != old_pair(a, b) || s.old_used[at->second])
        continue;
      name(j, at->second);
      mine = n + at->second;
    }
  }
  for (uint32_t g = 0; g < bag.groups; ++g) {
    const Group& group = groups_[bag.members + g];
    if (group.ref < n || group.image_index == kNone) continue;
    const uint32_t top = image_top_[group.image_index];
    if (merge_node[group.ref - n] != kNone || top == kNone || s.old_used[top]) continue;
    name(group.ref - n, top);
  }
}

void LevelUpdate::write_nodes(const Bag& bag, Adoption& a) {
  Scratch& s = a.scratch;
  const uint32_t n = bag.members_end - bag.members;
  NodeRef* merge_node = merge_node_.data() + bag.members;
  auto node_of = [&](uint32_t ref) {
    return ref < n ? low_->cold[members_[bag.members + ref]].node : merge_node[ref - n];
  };
  // A cluster may have other leaves although their number is the same: a node is written whenever a
  // cluster below it has changed, even if its own record stays the same.
  s.leaves_changed.resize(bag.merged);
  auto other_leaves = [&](uint32_t ref) {
    return ref < n ? has_other_leaves(members_[bag.members + ref]) : s.leaves_changed[ref - n] != 0;
  };
  for (uint32_t j = 0; j < bag.merged; ++j) {
    const Merge& m = merges_[bag.members + j];
    if (merge_node[j] == kNone) {
      const uint32_t number = a.adopted.nodes++;
      merge_node[j] = new_nodes_[number];
      Node& made = nodes_.nodes[merge_node[j]];
      made.level = index_;
      made.id = first_merge_id_ + number;
    }
    const Node& before = nodes_[merge_node[j]];
    const NodeRef left = node_of(m.a), right = node_of(m.b);
    s.leaves_changed[j] =
        before.left != left || before.right != right || other_leaves(m.a) || other_leaves(m.b);
    if (!s.leaves_changed[j] && before.similarity == m.similarity &&
        before.least_merge == m.least_merge) {
      continue;
    }
    Node& node = nodes_.change(merge_node[j], a.journal);
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
                                bool other_leaves, Adoption& a) {
  Vertex image;
  if (group.image_index == kNone) {
    image = new_images_[a.adopted.images++];
    high_->hot[image].size = group.size;
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
  high_->touch(image, a.hand);
  Cold& now = high_->cold[image];
  if (!same && now.state != State::kCreated) {
    if (now.state == State::kKept) {
      a.changed.push_back({image, h.size});
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

void LevelUpdate::write_member(Vertex v, Vertex image, Vertex next, const MemberResult& result,
                               Adoption& a) {
  const double hi = image == kNone ? rule_.finished_limit() : result.hi;
  const auto& [wmax, best] = result.heaviest;
  const Cold& c = low_->cold[v];
  if (c.next != next || c.old_node != c.node) {
    low_->touch(v, a.hand);
    low_->cold[v].next = next;
    low_->cold[v].old_node = c.node;
  }
  const Role& before = low_->role[v];
  if (before.image == image && before.hi == hi &&
      (hi != kInfinity || (before.wmax == wmax && before.best == best))) {
    return;
  }
  if (before.image != image && !(c.flags & kMoved)) {
    a.moved.push_back({v, before.image});
    low_->cold[v].flags |= kMoved;
  }
  Role& now = low_->change_role(v, a.hand);
  now.image = image;
  now.hi = hi;
  now.wmax = wmax;
  now.best = best;
}

void LevelUpdate::drop_image(Vertex image) {
  any_dropped_ = true;
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
