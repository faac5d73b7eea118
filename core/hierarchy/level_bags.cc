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

constexpr size_t kElements = size_t{1} << 12;  // of one piece of parallel work
constexpr size_t kBags = 512;                  // of one piece that only copies
constexpr size_t kSerialMembers = 1024;        // fewer are run by one thread

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

// Gives every listed vertex an element. All of them are alone in their groups.
void LevelUpdate::number_elements(std::span<const Vertex> listed) {
  const size_t ranges = Workers::ranges(listed.size(), kElements);
  if (ranges == 1) {
    for (const Vertex v : listed) element(v);
    return;
  }
  Vec<uint32_t> next(ranges, 0);
  workers_.for_ranges_numbered(listed.size(), kElements,
                               [&](size_t range, size_t begin, size_t end, uint32_t) {
                                 for (size_t i = begin; i < end; ++i)
                                   next[range] += low_->hot[listed[i]].slot == kNone;
                               });
  auto total = static_cast<uint32_t>(elements_.size());
  for (uint32_t& count : next) total += std::exchange(count, total);
  elements_.resize(total);
  workers_.for_ranges_numbered(listed.size(), kElements,
                               [&](size_t range, size_t begin, size_t end, uint32_t) {
                                 for (size_t i = begin; i < end; ++i) {
                                   uint32_t& slot = low_->hot[listed[i]].slot;
                                   if (slot != kNone) continue;
                                   const uint32_t e = slot = next[range]++;
                                   elements_[e] = {listed[i], e, 1, kNone, e, false};
                                 }
                               });
}

void LevelUpdate::join_partners() {
  if (candidates_.size() < Workers::range_size(kElements)) {
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
  Vec<Vec<Vertex>> missing(Workers::ranges(count, kElements));
  auto first_of = [&](Vertex v) {
    const Vertex image = low_->role[v].image;
    return image == kNone ? v : high_->cold[image].first;
  };
  workers_.for_ranges_numbered(count, kElements,
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
  workers_.for_ranges(up.size(), kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t e = begin; e < end; ++e) up[e] = static_cast<uint32_t>(e);
  });
  workers_.for_ranges(count, kElements, [&](size_t begin, size_t end, uint32_t hand) {
    for (size_t i = begin; i < end; ++i) {
      Candidate& c = candidates_[i];
      c.from = low_->hot[c.from].slot;
      c.to = low_->hot[first_of(c.to)].slot;
      up[c.from] = c.to;
    }
    if (Workers::is_caller(hand)) work(4 * (end - begin));
  });
  workers_.for_ranges(count, kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      const Candidate& c = candidates_[i];
      if (c.from > c.to || __atomic_load_n(&up[c.to], __ATOMIC_RELAXED) != c.from) continue;
      __atomic_store_n(&up[c.from], c.from, __ATOMIC_RELAXED);
    }
  });
  find_roots(up);
  const KeyRanges ranges(up.size(), count, kElements);
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
    workers_.for_ranges(up.size(), kElements, [&](size_t begin, size_t end, uint32_t hand) {
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
  const size_t count = elements_.size(), ranges = Workers::ranges(count, kElements);
  workers_.for_ranges(count, kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t e = begin; e < end; ++e) low_->hot[elements_[e].first].slot = kNone;
  });
  if (ranges <= 1) {
    collect_bags(0, count, bags_, members_, images_);
    work(8 * members_.size());
  } else {
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
  }
  recycle(elements_);
  workers_.for_ranges(members_.size(), kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) low_->hot[members_[i]].slot = static_cast<uint32_t>(i);
  });
  collect_all_old_merges();
  return !bags_.empty();
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

void LevelUpdate::collect_all_old_merges() {
  image_top_.assign(images_.size(), kNone);
  const size_t ranges = Workers::ranges(bags_.size(), kBags);
  Vec<Vec<OldMerge>> merges(ranges > 1 ? ranges : 0);
  workers_.for_ranges_numbered(bags_.size(), kBags,
                               [&](size_t range, size_t begin, size_t end, uint32_t hand) {
                                 Vec<OldMerge>& found = hand == 0 ? old_merges_ : merges[range];
                                 for (size_t b = begin; b < end; ++b)
                                   collect_old_merges(bags_[b], found);
                                 if (Workers::is_caller(hand)) work(8 * found.size());
                               });
  uint32_t base = 0;
  for (size_t range = 0; range < merges.size(); ++range) {
    const size_t one = Workers::range_size(kBags);
    for (size_t b = range * one; b < std::min(bags_.size(), (range + 1) * one); ++b) {
      bags_[b].old += base;
      bags_[b].old_end += base;
    }
    base += static_cast<uint32_t>(merges[range].size());
  }
  append_all(workers_, old_merges_, merges);
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
  runs_[0].pace = runs_[1].pace = Pace(poll);  // only the calling thread polls
  // Bags differ much in size: pieces are small, but not more than needed.
  const size_t piece = std::clamp<size_t>(bags_.size() / 256, 1, 64);
  const size_t few = Workers::range_size(kSerialMembers);
  workers_.for_ranges(bags_.size(), members_.size() < few ? bags_.size() : piece,
                      [&](size_t begin, size_t end, uint32_t hand) {
                        const uint64_t before = runs_[hand].edges_read;
                        for (size_t b = begin; b < end; ++b) {
                          kind_.last ? run_component(bags_[b], hand)
                                     : run_bag(bags_[b], runs_[hand]);
                        }
                        if (Workers::is_caller(hand)) work(runs_[hand].edges_read - before);
                      });
  for (GroupRun& run : runs_) {
    counters.edges_rerun += static_cast<int64_t>(run.edges_read);
    run.edges_read = 0;
  }
  counters.groups_rerun += static_cast<int64_t>(bags_.size());
  counters.vertices_rerun += static_cast<int64_t>(members_.size());
  adopt_bags();
  workers_.for_ranges(members_.size(), kElements, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) low_->hot[members_[i]].slot = kNone;
  });
  recycle(results_);
  recycle(merges_);
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
