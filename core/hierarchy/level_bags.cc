// Forms and runs bags: sets of groups that must be rerun together.
//
// Elements (groups, or vertices without one) are united in a union-find structure when a vertex
// wants to join a partner; a bag is a set of elements with a dirty one in it.

#include <algorithm>

#include "core/hierarchy/level_update.h"

namespace dynhac {

uint32_t LevelUpdate::element(Vertex v) {
  const Vertex image = low_->role[v].image;
  const Vertex first = image == kNone ? v : high_->cold[image].first;
  uint32_t& slot = low_->hot[first].slot;
  if (slot == kNone) {
    const auto e = static_cast<uint32_t>(elements_.size());
    elements_.push_back({first, e, image == kNone ? 1 : high_->cold[image].count, kNone, e, false});
    slot = e;
  }
  return slot;
}

uint32_t LevelUpdate::find(uint32_t e) {
  while (elements_[e].parent != e) {
    e = elements_[e].parent = elements_[elements_[e].parent].parent;
  }
  return e;
}

// The smaller index becomes the root: form_bags meets the root of a bag first.
uint32_t LevelUpdate::unite(uint32_t a, uint32_t b) {
  a = find(a);
  b = find(b);
  if (a == b) return a;
  if (a > b) std::swap(a, b);
  elements_[b].parent = a;
  elements_[a].count += elements_[b].count;
  elements_[a].dirty |= elements_[b].dirty;
  elements_[elements_[a].tail].next = b;
  elements_[a].tail = elements_[b].tail;
  return a;
}

// Returns whether there is a bag. Sets the slots of the members.
bool LevelUpdate::form_bags() {
  bags_.clear();
  members_.clear();
  images_.clear();
  image_top_.clear();
  old_merges_.clear();
  for (const Element& e : elements_) low_->hot[e.first].slot = kNone;
  for (uint32_t root = 0; root < elements_.size(); ++root) {
    if (elements_[root].parent != root || !elements_[root].dirty) continue;
    Bag bag{};
    bag.members = static_cast<uint32_t>(members_.size());
    bag.images = static_cast<uint32_t>(images_.size());
    for (uint32_t e = root; e != kNone; e = elements_[e].next) {
      const Vertex first = elements_[e].first;
      const Vertex image = low_->role[first].image;
      if (image == kNone) {
        if (low_->lives(first)) members_.push_back(first);
        continue;
      }
      images_.push_back(image);
      for (Vertex v = first; v != kNone; v = low_->cold[v].next) {
        low_->prefetch_edges(v, 16);  // the run will scan them
        if (low_->lives(v)) members_.push_back(v);
      }
    }
    bag.members_end = static_cast<uint32_t>(members_.size());
    bag.images_end = static_cast<uint32_t>(images_.size());
    work(8 * (members_.size() - bag.members));
    bags_.push_back(bag);
  }
  elements_.clear();
  for (uint32_t i = 0; i < members_.size(); ++i) low_->hot[members_[i]].slot = i;
  for (Bag& bag : bags_) {
    collect_old_merges(bag);
    work(8 * (bag.old_end - bag.old));
  }
  return !bags_.empty();
}

// Lists the merges of the bag's groups in the dendrogram, children first.
void LevelUpdate::collect_old_merges(Bag& bag) {
  bag.old = bag.old_end = static_cast<uint32_t>(old_merges_.size());
  const uint32_t n = bag.members_end - bag.members;
  bool any = false;
  image_top_.resize(images_.size(), kNone);
  for (uint32_t k = bag.images; k < bag.images_end; ++k) any |= high_->cold[images_[k]].count > 1;
  if (!any) return;
  const Vertex only = images_[bag.images];
  if (n == 2 && bag.images + 1 == bag.images_end && high_->cold[only].count == 2 &&
      low_->role[members_[bag.members]].image == only &&
      low_->role[members_[bag.members + 1]].image == only) {
    const NodeRef top = high_->cold[only].node;
    const bool first_is_left = nodes_[top].left == low_->cold[members_[bag.members]].old_node;
    old_merges_.push_back({top, first_is_left ? 0u : 1u, first_is_left ? 1u : 0u});
    image_top_[bag.images] = 0;
    bag.old_end = bag.old + 1;
    return;
  }
  auto ref_of_member = [&](uint32_t i) -> uint32_t& {
    return nodes_.ref(low_->cold[members_[bag.members + i]].old_node);
  };
  for (uint32_t i = 0; i < n; ++i) ref_of_member(i) = i;

  for (uint32_t k = bag.images; k < bag.images_end; ++k) {
    if (high_->cold[images_[k]].count <= 1) continue;
    const auto begin = static_cast<uint32_t>(old_merges_.size());
    old_merges_.push_back({high_->cold[images_[k]].node, kNone, kNone});
    for (uint32_t j = begin; j < old_merges_.size(); ++j) {  // parents first, for now
      const Node& node = nodes_[old_merges_[j].node];
      for (const NodeRef child : {node.left, node.right}) {
        if (nodes_[child].level == index_) old_merges_.push_back({child, kNone, kNone});
      }
    }
    std::reverse(old_merges_.begin() + begin, old_merges_.end());
    for (uint32_t j = begin; j < old_merges_.size(); ++j) {
      const Node& node = nodes_[old_merges_[j].node];
      old_merges_[j].a = nodes_.ref(node.left);
      old_merges_[j].b = nodes_.ref(node.right);
      nodes_.ref(old_merges_[j].node) = n + j - bag.old;
    }
    image_top_[k] = static_cast<uint32_t>(old_merges_.size()) - 1 - bag.old;
  }
  bag.old_end = static_cast<uint32_t>(old_merges_.size());
  for (uint32_t i = 0; i < n; ++i) ref_of_member(i) = kNone;
  for (uint32_t j = bag.old; j < bag.old_end; ++j) nodes_.ref(old_merges_[j].node) = kNone;
}

void LevelUpdate::run_bags() {
  results_.resize(members_.size());
  merges_.resize(members_.size());
  constexpr uint32_t kPiece = 1024;  // members
  runs_[0].pace = Pace(poll);        // only the calling thread polls
  if (members_.size() <= kPiece || workers_.count() == 1) {
    for (Bag& bag : bags_) {
      const uint64_t before = runs_[0].edges_read;
      run_bag(bag, runs_[0]);
      work(runs_[0].edges_read - before);
    }
  } else {
    run_bags_in_pieces(kPiece);
  }
  for (GroupRun& run : runs_) {
    counters.edges_rerun += static_cast<int64_t>(run.edges_read);
    run.edges_read = 0;
  }
  counters.groups_rerun += static_cast<int64_t>(bags_.size());
  counters.vertices_rerun += static_cast<int64_t>(members_.size());
  for (const Bag& bag : bags_) {
    adopt(bag);
    work(16 * (bag.members_end - bag.members));
  }
  for (const Vertex v : members_) low_->hot[v].slot = kNone;
}

void LevelUpdate::run_bags_in_pieces(uint32_t piece_size) {
  Vec<size_t> cuts{0};
  for (size_t b = 1; b < bags_.size(); ++b) {
    if (bags_[b].members - bags_[cuts.back()].members >= piece_size) cuts.push_back(b);
  }
  cuts.push_back(bags_.size());
  workers_.run(cuts.size() - 1, [&](size_t piece, uint32_t thread) {
    const uint64_t before = runs_[thread].edges_read;
    for (size_t b = cuts[piece]; b < cuts[piece + 1]; ++b) run_bag(bags_[b], runs_[thread]);
    if (thread == 0) work(runs_[thread].edges_read - before);
  });
}

void LevelUpdate::run_bag(Bag& bag, GroupRun& run) {
  const uint32_t n = bag.members_end - bag.members;
  if (n == 1 && low_->cold[members_[bag.members]].flags & kListed) {  // its heaviest edge is known
    const Role& r = low_->role[members_[bag.members]];
    results_[bag.members] = {kInfinity, {r.wmax, r.best}};
    return;
  }
  bag.merged = run.run(*low_, rule_, {members_.data() + bag.members, n}, bag.members,
                       {old_merges_.data() + bag.old, bag.old_end - bag.old}, bound_,
                       results_.data() + bag.members, merges_.data() + bag.members);
}

}  // namespace dynhac
