// Forms and runs bags: sets of groups that must be rerun together.
//
// Elements (groups, or vertices without one) are united in a union-find structure when a vertex
// wants to join a partner; a bag is a set of elements with a dirty one in it.
//
// Elements are numbered, and bags are ordered, independently of threads. Parallel joins are
// possible because only vertices alone in their group propose partners: every element has at most
// one proposal, along proposals linkages grow, and so proposals form trees. Trees are joined
// independently of each other.

#include <algorithm>
#include <atomic>

#include "core/base/partition.h"
#include "core/hierarchy/level_update.h"

namespace dynhac {

namespace {

// Of one piece of parallel work: elements that are joined, that form bags, and bags.
constexpr size_t kJoined = size_t{1} << 11, kElements = 512, kBags = 128;
constexpr size_t kSerialMembers = 1024;           // fewer are run by one thread
constexpr size_t kManyMembers = size_t{1} << 16;  // from here on their buffers may be given back

}  // namespace

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

// Appends elements that were numbered from 0 on in each list.
void LevelUpdate::append_elements(const Vec<Vec<Element>>& lists) {
  Vec<uint32_t> begins;
  auto total = static_cast<uint32_t>(elements_.size());
  for (const Vec<Element>& list : lists) {
    begins.push_back(total);
    total += static_cast<uint32_t>(list.size());
  }
  append_all(workers_, elements_, lists);
  workers_.run(lists.size(), [&](size_t i, uint32_t) {
    for (uint32_t e = begins[i]; e < begins[i] + lists[i].size(); ++e) {
      elements_[e].parent = elements_[e].tail = low_->hot[elements_[e].first].slot = e;
    }
  });
}

void LevelUpdate::join_partners() {
  if (candidates_.size() < Workers::range_size(kJoined)) {
    for (Candidate& c : candidates_) {
      c.from = low_->hot[c.from].slot;
      c.to = element(c.to);
    }
    join(candidates_);
  } else {
    join_in_parallel();
  }
  recycle(candidates_);
}

// The heaviest edges first, so that mutual best pairs are always united and every level makes
// progress.
void LevelUpdate::join(std::span<Candidate> candidates) {
  std::sort(candidates.begin(), candidates.end());
  for (const Candidate& c : candidates) {
    const uint32_t a = find(c.from), b = find(c.to);
    if (a == b || elements_[a].count + elements_[b].count > bound_) continue;
    elements_[unite(a, b)].dirty = true;
  }
}

void LevelUpdate::join_in_parallel() {
  const size_t count = candidates_.size();
  // Elements of partners that have none yet, in the order of the candidates.
  Vec<Vec<Vertex>> missing(Workers::ranges(count, kJoined));
  auto first_of = [&](Vertex v) {
    const Vertex image = low_->role[v].image;
    return image == kNone ? v : high_->cold[image].first;
  };
  workers_.for_ranges_numbered(count, kJoined,
                               [&](size_t range, size_t begin, size_t end, uint32_t) {
                                 for (size_t i = begin; i < end; ++i) {
                                   const Vertex partner = candidates_[i].to;
                                   if (low_->hot[first_of(partner)].slot == kNone)
                                     missing[range].push_back(partner);
                                 }
                               });
  for (const Vec<Vertex>& some : missing) {
    for (const Vertex v : some) element(v);
  }
  // up: the tree of proposals; of two elements that propose each other, the first is the root.
  // (While roots are marked, another thread may mark up[c.to]. It does not equal c.from before nor
  // after.)
  Buffer<uint32_t> up(elements_.size());
  workers_.for_ranges(up.size(), kJoined, [&](size_t begin, size_t end, uint32_t) {
    for (size_t e = begin; e < end; ++e) up[e] = static_cast<uint32_t>(e);
  });
  workers_.for_ranges(count, kJoined, [&](size_t begin, size_t end, uint32_t hand) {
    for (size_t i = begin; i < end; ++i) {
      Candidate& c = candidates_[i];
      c.from = low_->hot[c.from].slot;
      c.to = low_->hot[first_of(c.to)].slot;
      up[c.from] = c.to;
    }
    if (Workers::is_caller(hand)) work(4 * (end - begin));
  });
  workers_.for_ranges(count, kJoined, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      const Candidate& c = candidates_[i];
      if (c.from > c.to || __atomic_load_n(&up[c.to], __ATOMIC_RELAXED) != c.from) continue;
      __atomic_store_n(&up[c.from], c.from, __ATOMIC_RELAXED);
    }
  });
  find_roots(up);
  const KeyRanges ranges(up.size(), count, kJoined);
  Buffer<Candidate> parted(count);
  const Vec<size_t> begins = partition(
      workers_, count, ranges.buckets, parted.data(),
      [&](size_t i) { return ranges.of(up[candidates_[i].from]); },
      [&](size_t i) { return candidates_[i]; }, [&](size_t read) { work(read); });
  workers_.run(ranges.buckets, [&](size_t bucket, uint32_t thread) {
    const size_t size = begins[bucket + 1] - begins[bucket];
    join({parted.data() + begins[bucket], size});
    if (thread == 0) work(32 * size);
  });
}

// Makes every entry that of its root. Some steps a round: the paths may be very long.
void LevelUpdate::find_roots(Buffer<uint32_t>& up) {
  constexpr int kSteps = 4;
  std::atomic<bool> more{true};
  while (more.exchange(false)) {
    workers_.for_ranges(up.size(), kJoined, [&](size_t begin, size_t end, uint32_t hand) {
      for (size_t e = begin; e < end; ++e) {
        uint32_t at = __atomic_load_n(&up[e], __ATOMIC_RELAXED), next = at;
        for (int i = 0; i < kSteps; ++i) {
          next = __atomic_load_n(&up[at], __ATOMIC_RELAXED);
          if (next == at) break;
          at = next;
        }
        __atomic_store_n(&up[e], at, __ATOMIC_RELAXED);
        if (__atomic_load_n(&up[at], __ATOMIC_RELAXED) != at) more.store(true);
      }
      if (Workers::is_caller(hand)) work(4 * (end - begin));
    });
  }
}

// Returns whether there is a bag. Sets the slots of the members.
bool LevelUpdate::form_bags() {
  bags_.clear();
  members_.clear();
  images_.clear();
  old_merges_.clear();
  if (Workers::ranges(elements_.size(), kElements) > 1) {
    form_many_bags();
  } else {
    for (const Element& e : elements_) low_->hot[e.first].slot = kNone;
    collect_bags(0, elements_.size(), bags_, members_, images_);
    for (uint32_t i = 0; i < members_.size(); ++i) low_->hot[members_[i]].slot = i;
    image_top_.assign(images_.size(), kNone);
    for (Bag& bag : bags_) collect_old_merges(bag, old_merges_);
    work(8 * (members_.size() + old_merges_.size()));
  }
  recycle(elements_);
  return !bags_.empty();
}

void LevelUpdate::form_many_bags() {
  const size_t count = elements_.size(), ranges = Workers::ranges(count, kElements);
  workers_.for_ranges(count, kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t e = begin; e < end; ++e) low_->hot[elements_[e].first].slot = kNone;
  });
  Vec<Vec<Bag>> bags(ranges);
  Vec<Vec<Vertex>> members(ranges), images(ranges);
  workers_.for_ranges_numbered(
      count, kElements, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
        collect_bags(begin, end, bags[range], members[range], images[range]);
        if (Workers::is_caller(hand)) work(8 * members[range].size());
      });
  uint32_t member = 0, image = 0;
  for (size_t range = 0; range < ranges; ++range) {
    for (Bag& bag : bags[range]) {
      bag.members += member;
      bag.members_end += member;
      bag.images += image;
      bag.images_end += image;
    }
    member += static_cast<uint32_t>(members[range].size());
    image += static_cast<uint32_t>(images[range].size());
  }
  append_all(workers_, bags_, bags);
  append_all(workers_, members_, members);
  append_all(workers_, images_, images);
  workers_.for_ranges(members_.size(), kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) low_->hot[members_[i]].slot = static_cast<uint32_t>(i);
  });
  image_top_.assign(images_.size(), kNone);
  const size_t pieces = Workers::ranges(bags_.size(), kBags);
  Vec<Vec<OldMerge>> merges(pieces);
  Vec<size_t> ends(pieces);  // of the pieces, in bags_
  workers_.for_ranges_numbered(bags_.size(), kBags,
                               [&](size_t piece, size_t begin, size_t end, uint32_t hand) {
                                 for (size_t b = begin; b < end; ++b)
                                   collect_old_merges(bags_[b], merges[piece]);
                                 ends[piece] = end;
                                 if (Workers::is_caller(hand)) work(8 * merges[piece].size());
                               });
  uint32_t base = 0;
  for (size_t piece = 0, b = 0; piece < pieces; ++piece) {
    for (; b < ends[piece]; ++b) {
      bags_[b].old += base;
      bags_[b].old_end += base;
    }
    base += static_cast<uint32_t>(merges[piece].size());
  }
  append_all(workers_, old_merges_, merges);
}

// The bags whose roots are elements of a range.
void LevelUpdate::collect_bags(size_t begin, size_t end, Vec<Bag>& bags, Vec<Vertex>& members,
                               Vec<Vertex>& images) const {
  for (size_t root = begin; root < end; ++root) {
    if (elements_[root].parent != root || !elements_[root].dirty) continue;
    Bag bag{};
    bag.members = static_cast<uint32_t>(members.size());
    bag.images = static_cast<uint32_t>(images.size());
    for (uint32_t e = static_cast<uint32_t>(root); e != kNone; e = elements_[e].next) {
      const Vertex first = elements_[e].first;
      const Vertex image = low_->role[first].image;
      if (image == kNone) {
        if (low_->lives(first)) members.push_back(first);
        continue;
      }
      images.push_back(image);
      for (Vertex v = first; v != kNone; v = low_->cold[v].next) {
        low_->prefetch_edges(v, 16);  // the run will scan them
        if (low_->lives(v)) members.push_back(v);
      }
    }
    bag.members_end = static_cast<uint32_t>(members.size());
    bag.images_end = static_cast<uint32_t>(images.size());
    bags.push_back(bag);
  }
}

// Lists the merges of the bag's groups in the dendrogram, children first.
void LevelUpdate::collect_old_merges(Bag& bag, Vec<OldMerge>& merges) {
  bag.old = bag.old_end = static_cast<uint32_t>(merges.size());
  const uint32_t n = bag.members_end - bag.members;
  bool any = false;
  for (uint32_t k = bag.images; k < bag.images_end; ++k) any |= high_->cold[images_[k]].count > 1;
  if (!any) return;
  const Vertex only = images_[bag.images];
  if (n == 2 && bag.images + 1 == bag.images_end && high_->cold[only].count == 2 &&
      low_->role[members_[bag.members]].image == only &&
      low_->role[members_[bag.members + 1]].image == only) {
    const NodeRef top = high_->cold[only].node;
    const bool first_is_left = nodes_[top].left == low_->cold[members_[bag.members]].old_node;
    merges.push_back({top, first_is_left ? 0u : 1u, first_is_left ? 1u : 0u});
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
    const auto begin = static_cast<uint32_t>(merges.size());
    merges.push_back({high_->cold[images_[k]].node, kNone, kNone});
    for (uint32_t j = begin; j < merges.size(); ++j) {  // parents first, for now
      const Node& node = nodes_[merges[j].node];
      for (const NodeRef child : {node.left, node.right}) {
        if (nodes_[child].level == index_) merges.push_back({child, kNone, kNone});
      }
    }
    std::reverse(merges.begin() + begin, merges.end());
    for (uint32_t j = begin; j < merges.size(); ++j) {
      const Node& node = nodes_[merges[j].node];
      merges[j].a = nodes_.ref(node.left);
      merges[j].b = nodes_.ref(node.right);
      nodes_.ref(merges[j].node) = n + j - bag.old;
    }
    image_top_[k] = static_cast<uint32_t>(merges.size()) - 1 - bag.old;
  }
  bag.old_end = static_cast<uint32_t>(merges.size());
  for (uint32_t i = 0; i < n; ++i) ref_of_member(i) = kNone;
  for (uint32_t j = bag.old; j < bag.old_end; ++j) nodes_.ref(merges[j].node) = kNone;
}

void LevelUpdate::run_bags() {
  results_.renew(members_.size());
  merges_.renew(members_.size());
  groups_.renew(members_.size());
  group_next_.renew(members_.size());
  merge_node_.renew(members_.size());
  if (members_.size() < Workers::range_size(kSerialMembers)) {
    run_bags(0, bags_.size(), 0);
  } else {
    // Bags differ much in size: pieces are small, but not more than needed.
    const size_t piece = std::clamp<size_t>(bags_.size() / 256, 1, 64);
    workers_.for_ranges(bags_.size(), piece, [&](size_t begin, size_t end, uint32_t hand) {
      run_bags(begin, end, hand);
    });
  }
  counters_.groups_rerun += static_cast<int64_t>(bags_.size());
  counters_.vertices_rerun += static_cast<int64_t>(members_.size());
  adopt_bags();
  workers_.for_ranges(members_.size(), kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) low_->hot[members_[i]].slot = kNone;
  });
  if (members_.size() < kManyMembers) return;
  recycle(results_);
  recycle(merges_);
  recycle(groups_);
  recycle(group_next_);
  recycle(merge_node_);
}

void LevelUpdate::run_bags(size_t begin, size_t end, uint32_t hand) {
  GroupRun& run = runs_[hand];
  const uint64_t before = run.edges_read;
  for (size_t b = begin; b < end; ++b) {
    kind_.last ? run_component(bags_[b], hand) : run_bag(bags_[b], run);
  }
  if (Workers::is_caller(hand)) work(run.edges_read - before);
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
