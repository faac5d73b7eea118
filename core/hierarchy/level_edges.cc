// Adds edges to the adjacency lists of a level.
//
// The list of a vertex gets first the edges that it owns (those with it as `a`), then the others,
// both in the order in which they are given. Every list is written by one thread: the owned edges
// by the thread that has the owner's edges, the others by the one that has a range of vertices, to
// which their numbers are distributed first. Slots of the vertices count the entries to come: a
// slot is kNone, which is -1, plus their number.

#include <algorithm>

#include "core/base/partition.h"
#include "core/hierarchy/level_update.h"

namespace dynhac {

namespace {

constexpr size_t kRange = size_t{1} << 13;  // edges of one piece of parallel work

struct OtherEnd {
  Vertex b;
  uint32_t edge;  // in fresh
};

}  // namespace

void LevelUpdate::apply_fresh() {
  add_edges(in_->fresh);
  counters_.edges_changed += static_cast<int64_t>(in_->fresh.size());
  recycle(in_->fresh);
}

// Those with the same `a` in succession.
void LevelUpdate::add_edges(const Vec<Delta>& edges) {
  edges.size() < Workers::range_size(kRange) ? add_few_edges(edges) : add_many_edges(edges);
}

void LevelUpdate::add_few_edges(const Vec<Delta>& fresh) {
  for (const Delta& d : fresh) {
    low_->prefetch(d.b);
    ++low_->hot[d.a].slot;
    ++low_->hot[d.b].slot;
  }
  for (const Delta& d : fresh) {
    for (const Vertex v : {d.a, d.b}) {
      const uint32_t more = low_->hot[v].slot + 1;
      low_->hot[v].slot = kNone;
      if (more > 0) low_->reserve(v, more);
    }
    low_->prefetch_next_entry(d.b);
  }
  owned_at_.renew(fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) owned_at_[i] = low_->take_entry(fresh[i].a);
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (i + 8 < fresh.size()) low_->prefetch_next_entry(fresh[i + 8].b);
    const auto& [a, b, w] = fresh[i];
    const uint32_t at = low_->take_entry(b);
    low_->write_entry(a, owned_at_[i], {b, at, w});
    low_->write_entry(b, at, {a, owned_at_[i], w});
  }
  work(7 * fresh.size());
}

void LevelUpdate::add_many_edges(const Vec<Delta>& fresh) {
  const size_t count = fresh.size();
  low_->provide(workers_.hands());
  const KeyRanges ranges(low_->slots(), count, kRange);
  Buffer<OtherEnd> ends(count);
  const Vec<size_t> begins = partition(
      workers_, count, ranges.buckets, ends.data(), [&](size_t i) { return ranges.of(fresh[i].b); },
      [&](size_t i) { return OtherEnd{fresh[i].b, static_cast<uint32_t>(i)}; },
      [&](size_t read) { work(read); });
  workers_.run(ranges.buckets, [&](size_t bucket, uint32_t thread) {
    for (size_t j = begins[bucket]; j < begins[bucket + 1]; ++j) ++low_->hot[ends[j].b].slot;
    if (thread == 0) work(begins[bucket + 1] - begins[bucket]);
  });
  Buffer<uint32_t> other_at(count);  // as owned_at_, for the other end
  // Every owner has its edges in one range: the one in which they begin.
  owned_at_.renew(count);
  workers_.for_ranges(count, kRange, [&](size_t begin, size_t end, uint32_t hand) {
    size_t i = begin;
    while (i > 0 && i < end && fresh[i].a == fresh[i - 1].a) ++i;
    for (size_t j; i < end; i = j) {
      const Vertex a = fresh[i].a;
      for (j = i + 1; j < count && fresh[j].a == a;) ++j;
      low_->reserve(a, low_->hot[a].slot + 1 + static_cast<uint32_t>(j - i), hand);
      low_->hot[a].slot = kNone;
      for (size_t k = i; k < j; ++k) owned_at_[k] = low_->take_entry(a, hand);
    }
    if (Workers::is_caller(hand)) work(2 * (end - begin));
  });
  workers_.run(ranges.buckets, [&](size_t bucket, uint32_t thread) {
    const size_t begin = begins[bucket], end = begins[bucket + 1];
    const uint32_t hand = thread + 1;
    for (size_t j = begin; j < end; ++j) {
      const Vertex b = ends[j].b;
      const uint32_t more = low_->hot[b].slot + 1;
      if (more == 0) continue;
      low_->hot[b].slot = kNone;
      low_->reserve(b, more, hand);
    }
    constexpr size_t kAhead = 16;
    for (size_t j = begin; j < end; ++j) {
      if (j + kAhead < end) {
        const uint32_t soon = ends[j + kAhead].edge;
        __builtin_prefetch(&fresh[soon]);
        __builtin_prefetch(&owned_at_[soon]);
        low_->prefetch_next_entry(ends[j + kAhead].b);
      }
      const uint32_t i = ends[j].edge;
      const uint32_t at = other_at[i] = low_->take_entry(ends[j].b, hand);
      low_->write_entry(ends[j].b, at, {fresh[i].a, owned_at_[i], fresh[i].w});
    }
    if (thread == 0) work(4 * (end - begin));
  });
  workers_.for_ranges(count, kRange, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      low_->write_entry(fresh[i].a, owned_at_[i], {fresh[i].b, other_at[i], fresh[i].w});
    }
  });
  low_->gather();
  recycle(owned_at_);
}

}  // namespace dynhac
