#include "core/hierarchy/level_update.h"

#include <algorithm>

namespace dynhac {

namespace {

constexpr size_t kChunk = 1024;  // edges whose work is counted at once: mostly there are fewer

}  // namespace

void LevelChanges::clear() {
  recycle(removed);
  recycle(created);
  recycle(changed);
  recycle(deltas);
  recycle(fresh);
}

void LevelUpdate::run(uint32_t index, Level& low, Level& high, const Level* top, LevelChanges& in,
                      LevelChanges& out) {
  index_ = index;
  bound_ = group_bound(index);
  low_ = &low;
  high_ = &high;
  in_ = &in;
  out_ = &out;
  ++counters.levels;

  const Vertex v = likely_changed();
  ahead_.fetch_image(high, top, v == kNone ? kNone : low.role[v].image);
  fit_sums();
  apply_removals();
  apply_deltas();
  apply_fresh();
  low.compact_sparse(Pace(poll));
  ahead_.fetch_edges();
  check_changed();
  ahead_.fetch_neighbours();
  for (size_t searched = 0;;) {
    search(searched);
    searched = searching_.size();
    if (!form_bags()) break;
    run_bags();
    if (searching_.size() == searched) break;
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
  if (poll == nullptr) return;
  poll->reach(level_from_ + std::min(level_work_ / (2 * kReadings), level_todo_ / 2));
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
  for (const Vertex x : in_->removed) {
    const std::span<const Entry> entries = low_->edges(x);
    for (size_t p = 0; p < entries.size(); ++p) {
      prefetch_ahead(entries, p);
      const Entry& e = entries[p];
      if (e.neighbour == x) continue;
      low_->remove_entry(e.neighbour, e.mirror);
      lost(e.neighbour, x);
      pass_up(x, e.neighbour, -e.weight);
      ++counters.edges_changed;
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
  for (size_t i = 0, j; i < deltas.size(); i = j) {
    const Vertex a = deltas[i].a;
    for (j = i; j < deltas.size() && deltas[j].a == a; ++j) low_->prefetch(deltas[j].b);
    if (!low_->lives(a)) continue;
    work(4 * (j - i));
    // Many changes at one vertex: index its list once instead of searching it every time.
    const bool indexed = j - i >= 4 && low_->cold[a].used <= 32 * (j - i);
    if (indexed) {
      index_entries(a, false);
      work(2 * size_t{low_->cold[a].used});
    }
    for (size_t k = i; k < j; ++k) {
      const Vertex b = deltas[k].b;
      if (indexed && k + 4 < j) {
        const Vertex soon = deltas[k + 4].b;
        const uint32_t at = low_->hot[soon].slot;
        if (at != kNone) low_->prefetch_entry(soon, low_->edges(a)[at].mirror);
      }
      if (!low_->lives(b)) continue;
      if (indexed) {
        low_->hot[b].slot = apply_delta(deltas[k], low_->hot[b].slot);
      } else {
        work(std::min(low_->cold[a].used, low_->cold[b].used));
        apply_delta(deltas[k], low_->find(a, b).at_u);
      }
    }
    if (indexed) {
      index_entries(a, true);
      for (size_t k = i; k < j; ++k) low_->hot[deltas[k].b].slot = kNone;
    }
    flush_up(a);
  }
}

// Sets the slots of a's neighbours to their positions among its entries, or clears them.
void LevelUpdate::index_entries(Vertex a, bool clear) {
  const std::span<const Entry> entries = low_->edges(a);
  for (uint32_t p = 0; p < entries.size(); ++p) {
    low_->hot[entries[p].neighbour].slot = clear ? kNone : p;
  }
  low_->hot[a].slot = kNone;  // the neighbour of dead entries
}

// at_a: the position of b among the entries of a, or kNone. Returns the new position.
uint32_t LevelUpdate::apply_delta(const Delta& d, uint32_t at_a) {
  if (d.w == 0) return at_a;
  Weight w = d.w;
  if (at_a == kNone) {
    at_a = low_->add_edge(d.a, d.b, w);
  } else {
    w += low_->edges(d.a)[at_a].weight;
    if (w == 0) {
      low_->remove_edge(d.a, at_a);
      at_a = kNone;
      lost(d.a, d.b);
      lost(d.b, d.a);
    } else {
      low_->set_weight(d.a, at_a, w);
    }
  }
  ++counters.edges_changed;
  pass_up(d.a, d.b, d.w);
  if (w != 0) touched_.push_back({d.a, d.b, w});
  return at_a;
}

void LevelUpdate::apply_fresh() {
  Vec<Delta>& fresh = in_->fresh;
  // Counts the entries, so that new vertices get blocks of the right size.
  for (size_t i = 0; i < fresh.size(); ++i) {
    const Delta& d = fresh[i];
    low_->prefetch(d.b);
    ++low_->hot[d.a].slot;  // from kNone, which is -1: slot + 1 is the number of new entries
    ++low_->hot[d.b].slot;
    if (i % kChunk == kChunk - 1) work(kChunk);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    const Delta& d = fresh[i];
    for (const Vertex v : {d.a, d.b}) {
      const uint32_t more = low_->hot[v].slot + 1;
      low_->hot[v].slot = kNone;
      if (more > 0) low_->reserve(v, more);
    }
    low_->prefetch_next_entry(d.b);
    if (i % kChunk == kChunk - 1) work(2 * kChunk);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (i + 8 < fresh.size()) low_->prefetch_next_entry(fresh[i + 8].b);
    low_->add_edge(fresh[i].a, fresh[i].b, fresh[i].w);
    if (i % kChunk == kChunk - 1) work(4 * kChunk);
  }
  counters.edges_changed += static_cast<int64_t>(fresh.size());
  recycle(fresh);
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

void LevelUpdate::lost(Vertex v, Vertex neighbour) {
  if (low_->is_alone(v) && low_->role[v].best == neighbour) list(v);
}

void LevelUpdate::list(Vertex v) {
  if (low_->cold[v].flags & kListed) return;
  searching_.push_back(v);
  low_->cold[v].flags |= kListed;
}

void LevelUpdate::check_changed() {
  for (const Vertex v : dirty_) mark(v);
  for (const auto& [v, old_size] : in_->changed) {
    if (low_->is_alone(v)) list(v);
    mark(v);
    // Changed weights are in touched_; here, every linkage of v is scaled by its new size.
    const uint32_t size = low_->hot[v].size;
    const bool shrunk = size < old_size;
    const std::span<const Entry> entries = low_->edges(v);
    for (const Entry& e : entries) {
      const Vertex y = e.neighbour;
      if (shrunk) {
        if (y != v) check_end(y, v, linkage(e.weight, size, low_->hot[y].size));
      } else if (low_->role[y].best == v && low_->is_alone(y)) {
        list(y);
      }
    }
    work(entries.size());
  }
  for (size_t i = 0; i < touched_.size(); ++i) {
    const auto& [a, b, w] = touched_[i];
    if (i % kChunk == kChunk - 1) work(4 * kChunk);
    if (!low_->lives(a) || !low_->lives(b)) continue;
    const double l = linkage(w, low_->hot[a].size, low_->hot[b].size);
    check_end(a, b, l);
    check_end(b, a, l);
  }
  for (const Vertex x : in_->created) list(x);
  if (low_->alive() == in_->created.size()) return;  // all vertices are new
  for (const Vertex x : in_->created) {
    const std::span<const Entry> entries = low_->edges(x);
    for (const Entry& e : entries) {
      if (e.neighbour == x) continue;
      check_end(e.neighbour, x, linkage(e.weight, low_->hot[x].size, low_->hot[e.neighbour].size));
    }
    work(entries.size());
  }
}

// v has an edge with linkage l that is new or has grown: lists v or marks its group if necessary.
void LevelUpdate::check_end(Vertex v, Vertex neighbour, double l) {
  const Role& r = low_->role[v];
  if (r.hi == kInfinity) {
    if (r.best == neighbour || l >= r.wmax) list(v);
  } else if (l > r.hi) {
    if (r.image == kNone) {
      list(v);
    } else if (r.image != low_->role[neighbour].image) {
      mark(v);
    }
  }
}

// For every vertex listed since `from`: finds its heaviest edge, whether it is finished, and
// whether it may join the group at the other end.
void LevelUpdate::search(size_t from) {
  for (size_t i = from; i < searching_.size(); ++i) low_->change_role(searching_[i]);
  constexpr size_t kPiece = 1024;
  workers_.run((searching_.size() - from + kPiece - 1) / kPiece, [&](size_t piece,
                                                                     uint32_t thread) {
    const size_t begin = from + piece * kPiece, end = std::min(begin + kPiece, searching_.size());
    for (size_t i = begin; i < end; ++i) {
      const Heaviest found = low_->heaviest(searching_[i]);
      low_->role[searching_[i]].best = found.best;
      low_->role[searching_[i]].wmax = found.wmax;
      if (thread == 0) work(low_->cold[searching_[i]].used);
    }
  });
  for (size_t i = from; i < searching_.size(); ++i) {
    const Vertex v = searching_[i];
    const Role& r = low_->role[v];
    const bool had_image = r.image != kNone;
    if (!rule_.is_heavy(r.wmax)) {
      if (had_image || low_->cold[v].state == State::kCreated) mark(v);
      continue;
    }
    if (!had_image) mark(v);
    const double least = std::min(low_->cold[v].least_merge, low_->cold[r.best].least_merge);
    const double outside = heaviest_of(r.best);
    // A vertex that was alone before and is unchanged joins only as one of a mutual best pair. That
    // suffices to keep the levels few, and any other move would cost work on all levels above.
    const bool unchanged = had_image && low_->cold[v].state == State::kKept;
    const bool eager = !unchanged && index_ >= kEagerFrom;
    if (eager || (unchanged ? outside <= r.wmax : rule_.good(rule_.make, outside, least, r.wmax))) {
      candidates_.push_back({r.wmax, edge_rank(v, r.best), v, r.best});
    }
    work(8);
  }
  join_partners();
}

double LevelUpdate::heaviest_of(Vertex v) {
  Role& r = low_->role[v];
  if (r.hi != kInfinity && !(low_->cold[v].flags & (kListed | kKnown))) {
    known_.push_back(v);
    low_->cold[v].flags |= kKnown;
    r.wmax = low_->heaviest(v).wmax;
  }
  return r.wmax;
}

// The heaviest edges first, so that mutual best pairs are always united and every level makes
// progress.
void LevelUpdate::join_partners() {
  std::sort(candidates_.begin(), candidates_.end());
  for (const Candidate& c : candidates_) {
    const uint32_t a = find(element(c.v)), b = find(element(c.partner));
    if (a == b || elements_[a].count + elements_[b].count > bound_) continue;
    elements_[unite(a, b)].dirty = true;
    work(16);
  }
  candidates_.clear();
}

void LevelUpdate::fit_sums() {
  for (Sums& sums : sums_) {
    if (sums.weight.size() < high_->slots()) sums.weight.resize(high_->slots(), 0);
  }
}

void LevelUpdate::finish() {
  for (const Vertex v : searching_) low_->cold[v].flags = 0;
  for (const Vertex v : known_) low_->cold[v].flags = 0;
  for (const Moved& m : moved_) low_->cold[m.v].flags = 0;
  for (const Vertex v : in_->created) low_->cold[v].state = State::kKept;
  for (const Changed& c : in_->changed) low_->cold[c.v].state = State::kKept;
  // Images that were created or changed, and removed again, while bags were adopted.
  std::erase_if(out_->created, [&](Vertex g) { return !high_->lives(g); });
  std::erase_if(out_->changed,
                [&](const Changed& c) { return high_->cold[c.v].state == State::kRemoved; });
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
}

void LevelUpdate::reset() noexcept {
  forget();
  for (Sums& sums : sums_) {
    std::fill(sums.weight.begin(), sums.weight.end(), 0);
    sums.touched.clear();
  }
  nodes_.forget_refs();
  for (GroupRun& run : runs_) run.edges_read = 0;
}

}  // namespace dynhac
