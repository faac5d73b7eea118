// Sums up differences of weights; applies many changes of a level's graph in parallel: removals of
// vertices, and differences.
//
// Applying many has three steps, each parallel. First the changes are found out without changing
// anything: every range of removed vertices, and every range of pairs, lists the entries to drop,
// the weights to set, the edges to add, and what follows for groups and for the next level. Then
// weights are set; entries are dropped by ranges of the vertices that have them; edges are added as
// new ones are. Lists are put together in the order of the ranges.

#include <algorithm>
#include <atomic>

#include "core/base/partition.h"
#include "core/base/radix_sort.h"
#include "core/hierarchy/level_update.h"

namespace dynhac {

namespace {

constexpr size_t kRemoved = 64;               // vertices of one piece of parallel work
constexpr size_t kPairs = size_t{1} << 11;    // pairs of one piece
constexpr size_t kEntries = size_t{1} << 12;  // entries to drop of one piece

}  // namespace

struct LevelUpdate::Applied {
  struct Place {
    Vertex v;
    uint32_t at;
  };
  struct Weighed {
    Place place;
    Weight w;
  };
  Vec<Delta> up, touched, added;
  Vec<Vertex> dirty, lost;
  Vec<Place> dropped;
  Vec<Weighed> weighed;
  int64_t changed = 0;  // edges
};

// Leaves one difference for every pair of present vertices whose sum is not 0, those with the same
// `a` in succession. About half of the differences go: if a vertex moves from one image to another,
// its edges are subtracted here and added there, and where both images have one image themselves,
// the next level gets the same pair twice, with sums that cancel each other.
void LevelUpdate::sum_deltas() {
  Vec<Delta>& deltas = in_->deltas;
  std::erase_if(deltas,
                [&](const Delta& d) { return d.w == 0 || !low_->lives(d.a) || !low_->lives(d.b); });
  if (deltas.size() < 2) return;
  // The slot of every vertex that is the `a` of some pair is its number in delta_groups_. Where
  // both ends have one, the smaller number is the `a` from now on, so that equal pairs meet.
  delta_groups_.clear();
  for (const Delta& d : deltas) {
    uint32_t& slot = low_->hot[d.a].slot;
    if (slot != kNone) continue;
    slot = static_cast<uint32_t>(delta_groups_.size());
    delta_groups_.push_back({d.a, 0});
  }
  for (Delta& d : deltas) {
    if (low_->hot[d.b].slot < low_->hot[d.a].slot) std::swap(d.a, d.b);
    ++delta_groups_[low_->hot[d.a].slot].end;
  }
  uint32_t begin = 0;
  for (DeltasOf& group : delta_groups_) begin += std::exchange(group.end, begin);
  grouped_.renew(deltas.size());
  for (const Delta& d : deltas) grouped_[delta_groups_[low_->hot[d.a].slot].end++] = d;
  deltas.clear();
  Sums& sums = sums_[0];
  fit(sums, *low_);
  begin = 0;
  for (const auto& [a, end] : delta_groups_) {
    low_->hot[a].slot = kNone;
    for (; begin < end; ++begin) sums.add(grouped_[begin].b, grouped_[begin].w);
    sums.flush([&](Vertex b, Weight w) { deltas.push_back({a, b, w}); });
  }
}

void LevelUpdate::apply_many_removals() {
  const Vec<Vertex>& removed = in_->removed;
  low_->provide(workers_.hands());
  workers_.for_ranges(removed.size(), kRemoved, [&](size_t begin, size_t end, uint32_t hand) {
    for (size_t i = begin; i < end; ++i) {
      low_->touch(removed[i], hand);
      low_->cold[removed[i]].state = State::kRemoved;
    }
  });
  Vec<Applied> applied(Workers::ranges(removed.size(), kRemoved));
  workers_.for_ranges_numbered(removed.size(), kRemoved,
                               [&](size_t range, size_t begin, size_t end, uint32_t hand) {
                                 remove_in_range(begin, end, hand, applied[range]);
                               });
  drop_entries(applied);
  low_->gather();
  for (const Vertex x : removed) low_->discard(x);
  take_over(applied);
}

void LevelUpdate::remove_in_range(size_t begin, size_t end, uint32_t hand, Applied& applied) {
  Sums& sums = sums_[hand];
  fit(sums, *high_);
  for (size_t i = begin; i < end; ++i) {
    const Vertex x = in_->removed[i], image = low_->role[x].image;
    const std::span<const Entry> entries = low_->edges(x);
    for (size_t p = 0; p < entries.size(); ++p) {
      prefetch_ahead(entries, p);
      const Entry& e = entries[p];
      const Vertex y = e.neighbour;
      if (y == x) continue;
      if (low_->cold[y].state == State::kRemoved) {
        if (y < x) continue;  // counted there
      } else {
        applied.dropped.push_back({y, e.mirror});
        if (loses(y, x)) applied.lost.push_back(y);
      }
      ++applied.changed;
      const Vertex other = low_->role[y].image;
      if (image == kNone || other == kNone) continue;
      if (image == other) {
        applied.dirty.push_back(x);
      } else {
        sums.add(other, -e.weight);
      }
    }
    sums.flush([&](Vertex other, Weight w) { applied.up.push_back({image, other, w}); });
    applied.dirty.push_back(x);
    if (Workers::is_caller(hand)) work(entries.size());
  }
}

void LevelUpdate::apply_many_deltas() {
  const Vec<Delta>& deltas = in_->deltas;
  low_->provide(workers_.hands());
  const KeyRanges ranges(low_->slots(), deltas.size(), kPairs);
  Buffer<Delta> parted(deltas.size());
  const Vec<size_t> begins = partition(
      workers_, deltas.size(), ranges.buckets, parted.data(),
      [&](size_t i) { return ranges.of(std::max(deltas[i].a, deltas[i].b)); },
      [&](size_t i) {
        const auto& [a, b, w] = deltas[i];
        return Delta(std::max(a, b), std::min(a, b), w);
      },
      [&](size_t read) { work(read); });
  Vec<Applied> applied(ranges.buckets);
  workers_.run(ranges.buckets, [&](size_t bucket, uint32_t thread) {
    const std::span<Delta> part(parted.data() + begins[bucket], parted.data() + begins[bucket + 1]);
    apply_in_bucket(part, thread + 1, applied[bucket]);
    if (thread == 0) work(16 * part.size());
  });
  workers_.run(applied.size(), [&](size_t i, uint32_t thread) {
    for (const auto& [place, w] : applied[i].weighed) {
      low_->set_weight(place.v, place.at, w, thread + 1);
    }
  });
  drop_entries(applied);
  low_->gather();
  Vec<Vec<Delta>> added;
  for (Applied& one : applied) added.push_back(std::move(one.added));
  Vec<Delta> edges;
  append_all(workers_, edges, added);
  add_edges(edges);
  take_over(applied);
}

// All differences of some vertices `a`.
void LevelUpdate::apply_in_bucket(std::span<Delta> deltas, uint32_t hand, Applied& applied) {
  // Every pair once, without those that are gone or stay the same.
  Buffer<Delta> buffer;
  radix_sort(deltas, buffer, [](const Delta& d) { return static_cast<uint64_t>(d.a) << 32 | d.b; });
  size_t pairs = 0;
  for (size_t i = 0, j; i < deltas.size(); i = j) {
    Delta sum = deltas[i];
    for (j = i + 1; j < deltas.size() && deltas[j].a == sum.a && deltas[j].b == sum.b; ++j) {
      sum.w += deltas[j].w;
    }
    if (sum.w != 0 && low_->lives(sum.a) && low_->lives(sum.b)) deltas[pairs++] = sum;
  }
  deltas = deltas.first(pairs);
  applied.changed += static_cast<int64_t>(pairs);
  Vec<uint32_t> positions(pairs);
  Sums& sums = sums_[hand];
  fit(sums, *high_);
  for (size_t i = 0, j; i < pairs; i = j) {
    const Vertex a = deltas[i].a, image = low_->role[a].image;
    for (j = i; j < pairs && deltas[j].a == a;) ++j;
    find_positions(deltas.subspan(i, j - i), hand, &positions[i]);
    for (size_t k = i; k < j; ++k) {
      const auto& [a_again, b, difference] = deltas[k];
      const uint32_t at = positions[k];
      Weight w = difference;
      if (at == kNone) {
        applied.added.push_back(deltas[k]);
      } else {
        const Entry& e = low_->edges(a)[at];
        w += e.weight;
        if (w == 0) {
          applied.dropped.push_back({a, at});
          applied.dropped.push_back({b, e.mirror});
          if (loses(a, b)) applied.lost.push_back(a);
          if (loses(b, a)) applied.lost.push_back(b);
        } else {
          applied.weighed.push_back({{a, at}, w});
        }
      }
      if (w != 0) applied.touched.push_back({a, b, w});
      const Vertex other = low_->role[b].image;
      if (image == kNone || other == kNone) continue;
      if (image == other) {
        applied.dirty.push_back(a);
      } else {
        sums.add(other, difference);
      }
    }
    sums.flush([&](Vertex other, Weight w) { applied.up.push_back({image, other, w}); });
  }
}

// The positions of the other ends among the entries of one vertex, kNone where there is no edge.
void LevelUpdate::find_positions(std::span<const Delta> deltas, uint32_t hand,
                                 uint32_t* positions) {
  const Vertex a = deltas[0].a;
  const std::span<const Entry> entries = low_->edges(a);
  if (deltas.size() < 4 || entries.size() > 32 * deltas.size()) {
    for (size_t k = 0; k < deltas.size(); ++k) positions[k] = low_->find(a, deltas[k].b).at_u;
    return;
  }
  Vec<uint32_t>& at = entry_at_[hand];
  if (at.size() < low_->slots()) at.resize(low_->slots(), kNone);
  for (uint32_t p = 0; p < entries.size(); ++p) at[entries[p].neighbour] = p;
  for (size_t k = 0; k < deltas.size(); ++k) positions[k] = at[deltas[k].b];
  for (const Entry& e : entries) at[e.neighbour] = kNone;
}

// Drops entries: by ranges of the vertices that have them.
void LevelUpdate::drop_entries(const Vec<Applied>& applied) {
  Vec<std::span<const Applied::Place>> lists;
  Vec<Applied::Place> all;
  for (const Applied& one : applied) lists.push_back(one.dropped);
  append_all(workers_, all, lists);
  if (all.empty()) return;
  const KeyRanges ranges(low_->slots(), all.size(), kEntries);
  Buffer<Applied::Place> parted(all.size());
  const Vec<size_t> begins = partition(
      workers_, all.size(), ranges.buckets, parted.data(),
      [&](size_t i) { return ranges.of(all[i].v); }, [&](size_t i) { return all[i]; },
      [&](size_t read) { work(read); });
  workers_.run(ranges.buckets, [&](size_t bucket, uint32_t thread) {
    for (size_t i = begins[bucket]; i < begins[bucket + 1]; ++i) {
      low_->remove_entry(parted[i].v, parted[i].at, thread + 1);
    }
    if (thread == 0) work(2 * (begins[bucket + 1] - begins[bucket]));
  });
}

// What was found out for groups and for the next level.
void LevelUpdate::take_over(Vec<Applied>& applied) {
  auto append = [&](auto& all, auto list) {
    Vec<std::span<const typename std::remove_reference_t<decltype(all)>::value_type>> lists;
    for (const Applied& one : applied) lists.push_back(one.*list);
    append_all(workers_, all, lists);
  };
  append(out_->deltas, &Applied::up);
  append(touched_, &Applied::touched);
  append(dirty_, &Applied::dirty);
  for (const Applied& one : applied) {
    for (const Vertex v : one.lost) list(v);
    counters_.edges_changed += one.changed;
  }
}

}  // namespace dynhac
