#include "core/hierarchy/level_update.h"

#include <algorithm>

#include "core/base/partition.h"

namespace dynhac {

namespace {

// Vertices of one piece of parallel work: with their edges, or their records alone.
constexpr size_t kSomeVertices = 128, kManyVertices = size_t{1} << 13;
// From so many removals or deltas on, they are applied in parallel (level_deltas.cc), which is slow
// for few.
constexpr size_t kManyRemoved = 256, kManyDeltas = size_t{1} << 14;

}  // namespace

void LevelChanges::clear() {
  recycle(removed);
  recycle(created);
  recycle(changed);
  recycle(deltas);
  recycle(fresh);
}

void LevelUpdate::begin(Poll* poll) {
  poll_ = poll;
  counters_ = {};
  for (GroupRun& run : runs_) run.edges_read = 0;
  runs_[0].pace = runs_[1].pace = Pace(poll);  // only the calling thread polls
}

Counters LevelUpdate::counters() const {
  Counters all = counters_;
  for (const GroupRun& run : runs_) all.edges_rerun += static_cast<int64_t>(run.edges_read);
  return all;
}

void LevelUpdate::run(uint32_t index, LevelKind kind, Level& low, Level& high, const Level* top,
                      LevelChanges& in, LevelChanges& out) {
  index_ = index;
  kind_ = kind;
  bound_ = group_bound(index);
  low_ = &low;
  high_ = &high;
  in_ = &in;
  out_ = &out;
  ++counters_.levels;

  const Vertex v = likely_changed();
  ahead_.fetch_image(high, top, v == kNone ? kNone : low.role[v].image);
  fit(sums_[0], high);
  apply_removals();
  apply_deltas();
  apply_fresh();
  low.compact_sparse(Pace(poll_));
  ahead_.fetch_edges();
  if (kind.last) {
    find_components(kind.anew);
    if (form_bags()) run_bags();
  } else {
    check_changed();
    if (kind.anew) renew();
    ahead_.fetch_neighbours();
    for (size_t searched = 0;;) {
      search(searched);
      searched = searching_.size();
      if (!form_bags()) break;
      run_bags();
      if (searching_.size() == searched) break;
    }
  }
  ahead_.fetch_members();
  lift();
  finish();
}

// A build reads every edge of a level about kReadings times, and the next level has about half of
// the edges. These are estimates, for progress only.
void LevelUpdate::report_work() {
  constexpr uint64_t kReadings = 8;
  level_work_ += unpolled_;
  unpolled_ = 0;
  if (poll_ == nullptr) return;
  poll_->reach(level_from_ + std::min(level_work_ / (2 * kReadings), level_todo_ / 2));
}

// A vertex whose image will probably change, or kNone. A new vertex will probably join its heaviest
// neighbour.
Vertex LevelUpdate::likely_changed() const {
  if (!in_->changed.empty()) return in_->changed[0].v;
  if (!in_->removed.empty()) return in_->removed[0];
  Vertex heaviest = kNone;
  Weight most = 0;
  for (const Delta& d : in_->fresh) {
    if (d.a != in_->fresh[0].a) break;
    if (d.w > most) {
      most = d.w;
      heaviest = d.b;
    }
  }
  return heaviest;
}

void LevelUpdate::apply_removals() {
  if (in_->removed.size() >= Workers::range_size(kManyRemoved)) return apply_many_removals();
  for (const Vertex x : in_->removed) {
    const std::span<const Entry> entries = low_->edges(x);
    for (const Entry& e : entries.first(std::min<size_t>(entries.size(), 16))) {
      low_->prefetch(e.neighbour);
    }
    for (size_t p = 0; p < entries.size(); ++p) {
      prefetch_ahead(entries, p);
      const Entry& e = entries[p];
      if (e.neighbour == x) continue;
      low_->remove_entry(e.neighbour, e.mirror);
      lost(e.neighbour, x);
      pass_up(x, e.neighbour, -e.weight);
      ++counters_.edges_changed;
    }
    flush_up(x);
    dirty_.push_back(x);
    low_->discard(x);
    low_->cold[x].state = State::kRemoved;
    work(entries.size());
  }
}

void LevelUpdate::prefetch_ahead(std::span<const Entry> entries, size_t p) const {
  if (p + 16 < entries.size()) low_->prefetch(entries[p + 16].neighbour);
  if (p + 8 < entries.size()) low_->prefetch_entry(entries[p + 8].neighbour, entries[p + 8].mirror);
}

void LevelUpdate::apply_deltas() {
  const Vec<Delta>& deltas = in_->deltas;
  if (deltas.size() >= Workers::range_size(kManyDeltas)) return apply_many_deltas();
  work(4 * deltas.size());
  sum_deltas();
  // The entries of some deltas are found, and those at the other ends prefetched, before these
  // deltas are applied. Positions of entries stay the same meanwhile.
  constexpr size_t kSome = 32;
  positions_.renew(deltas.size());
  for (size_t i = 0, j, applied = 0; i < deltas.size(); i = j) {
    for (j = i; j < deltas.size() && deltas[j].a == deltas[i].a; ++j) low_->prefetch(deltas[j].b);
    find_positions(i, j);
    if (j - applied < kSome && j < deltas.size()) continue;
    for (; applied < j; ++applied) {
      apply_delta(deltas[applied], positions_[applied]);
      const Vertex a = deltas[applied].a;
      if (applied + 1 == deltas.size() || deltas[applied + 1].a != a) flush_up(a);
    }
  }
}

// Of deltas with the same `a`.
void LevelUpdate::find_positions(size_t begin, size_t end) {
  const Vertex a = in_->deltas[begin].a;
  // Many changes at one vertex: index its list once instead of searching it every time.
  const bool indexed = end - begin >= 4 && low_->cold[a].used <= 32 * (end - begin);
  if (indexed) {
    index_entries(a, false);
    work(2 * size_t{low_->cold[a].used});
  }
  for (size_t i = begin; i < end; ++i) {
    const Vertex b = in_->deltas[i].b;
    if (!indexed) work(std::min(low_->cold[a].used, low_->cold[b].used));
    const uint32_t at = indexed ? low_->hot[b].slot : low_->find(a, b).at_u;
    if (at != kNone) low_->prefetch_entry(b, low_->edges(a)[at].mirror);
    positions_[i] = at;
  }
  if (indexed) index_entries(a, true);
}

// Sets the slots of a's neighbours to their positions among its entries, or clears them.
void LevelUpdate::index_entries(Vertex a, bool clear) {
  const std::span<const Entry> entries = low_->edges(a);
  for (uint32_t p = 0; p < entries.size(); ++p) {
    low_->hot[entries[p].neighbour].slot = clear ? kNone : p;
  }
  low_->hot[a].slot = kNone;  // the neighbour of dead entries
}

// at_a: the position of b among the entries of a, or kNone.
void LevelUpdate::apply_delta(const Delta& d, uint32_t at_a) {
  Weight w = d.w;
  if (at_a == kNone) {
    low_->add_edge(d.a, d.b, w);
  } else {
    w += low_->edges(d.a)[at_a].weight;
    if (w == 0) {
      low_->remove_edge(d.a, at_a);
      lost(d.a, d.b);
      lost(d.b, d.a);
    } else {
      low_->set_weight(d.a, at_a, w);
    }
  }
  ++counters_.edges_changed;
  pass_up(d.a, d.b, d.w);
  if (w != 0) touched_.push_back({d.a, d.b, w});
}

// A weight changed: the weight between the images changes, too, or the group must be rerun. Changes
// at one vertex are summed up until flush_up, since many of them may have the same pair of images.
void LevelUpdate::pass_up(Vertex a, Vertex b, Weight difference) {
  const Vertex x = low_->role[a].image, y = low_->role[b].image;
  if (x == kNone || y == kNone) return;
  if (x == y) {
    dirty_.push_back(a);
  } else {
    sums_[0].add(y, difference);
  }
}

void LevelUpdate::flush_up(Vertex a) {
  sums_[0].flush([&, x = low_->role[a].image](Vertex y, Weight difference) {
    high_->prefetch(y);
    out_->deltas.push_back({x, y, difference});
  });
}

void LevelUpdate::list(Vertex v) {
  if (low_->cold[v].flags & kListed) return;
  searching_.push_back(v);
  low_->cold[v].flags |= kListed;
}

void LevelUpdate::check_changed() {
  for (const Vertex v : dirty_) mark(v);
  for_findings(in_->changed.size(), 256, [&](size_t i, auto found) {
    const auto& [v, old_size] = in_->changed[i];
    if (low_->is_alone(v)) found(v, Finding::kList);
    found(v, Finding::kMark);
    // Changed weights are in touched_; here, every linkage of v is scaled by its new size.
    const uint32_t size = low_->hot[v].size;
    const bool shrunk = size < old_size;
    const std::span<const Entry> entries = low_->edges(v);
    for (const Entry& e : entries) {
      const Vertex y = e.neighbour;
      if (shrunk) {
        if (y != v) check_end(y, v, linkage(e.weight, size, low_->hot[y].size), found);
      } else if (low_->role[y].best == v && low_->is_alone(y)) {
        found(y, Finding::kList);
      }
    }
    return entries.size();
  });
  for_findings(touched_.size(), 1024, [&](size_t i, auto found) {
    const auto& [a, b, w] = touched_[i];
    if (low_->lives(a) && low_->lives(b)) {
      const double l = linkage(w, low_->hot[a].size, low_->hot[b].size);
      check_end(a, b, l, found);
      check_end(b, a, l, found);
    }
    return 4;
  });
  list_created();
  if (low_->alive() == in_->created.size()) return;  // all vertices are new
  for_findings(in_->created.size(), 256, [&](size_t i, auto found) {
    const Vertex x = in_->created[i];
    const std::span<const Entry> entries = low_->edges(x);
    for (const Entry& e : entries) {
      if (e.neighbour == x) continue;
      check_end(e.neighbour, x, linkage(e.weight, low_->hot[x].size, low_->hot[e.neighbour].size),
                found);
    }
    return entries.size();
  });
}

// All groups must be run again.
void LevelUpdate::renew() {
  for (Vertex v = 0; v < low_->slots(); ++v) {
    if (!low_->lives(v)) continue;
    low_->is_alone(v) || low_->role[v].image == kNone ? list(v) : mark(v);
  }
  work(low_->slots());
}

// Calls check(i, found) for every i < count; it returns its work, and calls found(v, finding) for
// what is to be done, which is done in the order of the i.
template <class Check>
void LevelUpdate::for_findings(size_t count, size_t range_size, Check check) {
  auto apply = [&](Vertex v, Finding finding) { finding == Finding::kList ? list(v) : mark(v); };
  const size_t ranges = Workers::ranges(count, range_size);
  if (ranges <= 1) {
    for (size_t i = 0; i < count; ++i) work(check(i, apply));
    return;
  }
  struct Found {
    Vertex v;
    Finding finding;
  };
  Vec<Vec<Found>> found(ranges);
  workers_.for_ranges_numbered(
      count, range_size, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
        auto keep = [&](Vertex v, Finding finding) { found[range].push_back({v, finding}); };
        for (size_t i = begin; i < end; ++i) {
          const size_t done = check(i, keep);
          if (Workers::is_caller(hand)) work(done);
        }
      });
  for (const Vec<Found>& some : found) {
    for (const auto& [v, finding] : some) apply(v, finding);
  }
}

// v has an edge with linkage l that is new or has grown: lists v or marks its group if necessary.
template <class Found>
void LevelUpdate::check_end(Vertex v, Vertex neighbour, double l, Found found) const {
  const Role& r = low_->role[v];
  if (r.hi == kInfinity) {
    if (r.best == neighbour || l >= r.wmax) found(v, Finding::kList);
  } else if (l > r.hi) {
    if (r.image == kNone) {
      found(v, Finding::kList);
    } else if (r.image != low_->role[neighbour].image) {
      found(v, Finding::kMark);
    }
  }
}

void LevelUpdate::list_created() {  // none of them is listed yet
  const size_t before = searching_.size();
  searching_.insert(searching_.end(), in_->created.begin(), in_->created.end());
  workers_.for_ranges(in_->created.size(), kManyVertices, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) low_->cold[searching_[before + i]].flags |= kListed;
  });
}

// For every vertex listed since `from`: finds its heaviest edge, whether it is finished, and
// whether it may join the group at the other end. All of these are alone in their groups.
void LevelUpdate::search(size_t from) {
  const std::span<const Vertex> listed = std::span<const Vertex>(searching_).subspan(from);
  if (listed.empty()) return;
  const bool left_alone = from > 0;  // by a bag that has been run
  if (Workers::ranges(listed.size(), kSomeVertices) > 1) {
    search_many(listed, left_alone);
  } else {
    const size_t known_before = known_.size();
    for (const Vertex v : listed) find_heaviest(v, 0);
    for (size_t i = known_before; i < known_.size(); ++i) renew_heaviest(known_[i], 0);
    for (const Vertex v : listed) propose(v, left_alone, candidates_, elements_);
  }
  join_partners();
}

void LevelUpdate::search_many(std::span<const Vertex> listed, bool left_alone) {
  low_->provide(workers_.hands());
  workers_.for_ranges(listed.size(), kSomeVertices, [&](size_t begin, size_t end, uint32_t hand) {
    for (size_t i = begin; i < end; ++i) find_heaviest(listed[i], hand);
  });
  low_->gather();
  const size_t known_before = known_.size();
  append_all(workers_, known_, wanted_);
  for (Vec<Vertex>& wanted : wanted_) wanted.clear();
  workers_.for_ranges(known_.size() - known_before, kSomeVertices / 4,
                      [&](size_t begin, size_t end, uint32_t hand) {
                        for (size_t i = known_before + begin; i < known_before + end; ++i)
                          renew_heaviest(known_[i], hand);
                      });
  const size_t ranges = Workers::ranges(listed.size(), kSomeVertices);
  Vec<Vec<Candidate>> candidates(ranges);
  Vec<Vec<Element>> elements(ranges);
  workers_.for_ranges_numbered(
      listed.size(), kSomeVertices, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
        for (size_t i = begin; i < end; ++i)
          propose(listed[i], left_alone, candidates[range], elements[range]);
        if (Workers::is_caller(hand)) work(8 * (end - begin));
      });
  append_all(workers_, candidates_, candidates);
  append_elements(elements);
}

void LevelUpdate::find_heaviest(Vertex v, uint32_t hand) {
  if (!low_->lives(v)) return;
  Role& r = low_->change_role(v, hand);
  const Heaviest found = low_->heaviest(v);
  r.best = found.best;
  r.wmax = found.wmax;
  if (rule_.is_heavy(r.wmax) && !low_->is_alone(r.best)) want_heaviest_of(r.best, hand);
  if (Workers::is_caller(hand)) work(low_->cold[v].used);
}

void LevelUpdate::renew_heaviest(Vertex v, uint32_t hand) {
  low_->role[v].wmax = low_->heaviest(v).wmax;
  if (Workers::is_caller(hand)) work(low_->cold[v].used);
}

// Puts v, which is in a larger group, into known_, or wanted_ if other threads do the same, unless
// its wmax is exact or will be.
void LevelUpdate::want_heaviest_of(Vertex v, uint32_t hand) {
  uint8_t& flags = low_->cold[v].flags;
  if (hand == 0) {
    if (flags & (kListed | kKnown)) return;
    flags |= kKnown;
    known_.push_back(v);
  } else {
    if (__atomic_load_n(&flags, __ATOMIC_RELAXED) & (kListed | kKnown)) return;
    if (__atomic_fetch_or(&flags, kKnown, __ATOMIC_RELAXED) & kKnown) return;
    wanted_[hand].push_back(v);
  }
}

// Whether a listed vertex must be rerun, and which partner it would join: if any of these, it gets
// an element.
void LevelUpdate::propose(Vertex v, bool left_alone, Vec<Candidate>& candidates,
                          Vec<Element>& elements) {
  if (!low_->lives(v)) return;
  const Role& r = low_->role[v];
  const bool had_image = r.image != kNone;
  auto add_element = [&](bool dirty) {
    uint32_t& slot = low_->hot[v].slot;
    if (slot != kNone) {  // marked before
      elements_[slot].dirty |= dirty;
      return;
    }
    slot = static_cast<uint32_t>(elements.size());
    elements.push_back({v, slot, 1, kNone, slot, dirty});
  };
  if (!rule_.is_heavy(r.wmax)) {
    if (had_image || low_->cold[v].state == State::kCreated) add_element(true);
    return;
  }
  const double least = std::min(low_->cold[v].least_merge, low_->cold[r.best].least_merge);
  const double outside = low_->role[r.best].wmax;
  // A vertex that was alone before and is unchanged joins only as one of a mutual best pair. That
  // suffices to keep the levels few, and any other move would cost work on all levels above.
  const bool unchanged = had_image && !left_alone && low_->cold[v].state == State::kKept;
  const bool eager = low_->cold[v].state == State::kCreated && index_ >= kEagerFrom;
  if (eager || (unchanged ? outside <= r.wmax : rule_.good(rule_.make, outside, least, r.wmax))) {
    candidates.push_back({r.wmax, edge_rank(v, r.best), v, r.best});
    add_element(!had_image);
  } else if (!had_image) {
    add_element(true);
  }
}

void LevelUpdate::fit(Sums& sums, const Level& level) const {
  if (sums.weight.size() < level.slots()) sums.weight.resize(level.slots(), 0);
}

void LevelUpdate::finish() {
  const size_t few = Workers::range_size(kManyVertices);
  auto for_all = [&](const auto& list, auto body) {
    if (list.size() <= few) {
      for (const auto& one : list) body(one);
      return;
    }
    workers_.for_ranges(list.size(), kManyVertices, [&](size_t begin, size_t end, uint32_t) {
      for (size_t i = begin; i < end; ++i) body(list[i]);
    });
  };
  for_all(searching_, [&](Vertex v) { low_->cold[v].flags = 0; });
  for_all(known_, [&](Vertex v) { low_->cold[v].flags = 0; });
  for_all(moved_, [&](const Moved& m) { low_->cold[m.v].flags = 0; });
  for_all(in_->created, [&](Vertex v) { low_->cold[v].state = State::kKept; });
  for_all(in_->changed, [&](const Changed& c) { low_->cold[c.v].state = State::kKept; });
  if (any_dropped_) {
    // Images that were created or changed, and removed again, while bags were adopted.
    std::erase_if(out_->created, [&](Vertex g) { return !high_->lives(g); });
    std::erase_if(out_->changed,
                  [&](const Changed& c) { return high_->cold[c.v].state == State::kRemoved; });
  }
  forget();
}

void LevelUpdate::forget() noexcept {
  touched_.clear();
  dirty_.clear();
  searching_.clear();
  known_.clear();
  candidates_.clear();
  elements_.clear();
  moved_.clear();
  any_dropped_ = false;
}

void LevelUpdate::reset() noexcept {
  forget();
  for (Sums& sums : sums_) {
    std::fill(sums.weight.begin(), sums.weight.end(), 0);
    sums.touched.clear();
  }
  for (Vec<Vertex>& wanted : wanted_) wanted.clear();
  nodes_.forget_refs();
}

}  // namespace dynhac
