// Turns moves of vertices between groups into weight changes between images.
//
// Both passes use the present weights; changes of weights were passed up, between the old images,
// when they were applied. Weights are summed up per image before they are written, and every edge
// is counted once: if both ends moved, at one of them.

#include <algorithm>
#include <atomic>

#include "core/base/partition.h"
#include "core/hierarchy/level_update.h"

namespace dynhac {

namespace {

// Moved vertices of one piece of parallel work: with their edges, or to sort.
constexpr size_t kVertices = 128, kMany = size_t{1} << 12;

}  // namespace

void LevelUpdate::lift() {
  sort_moved();
  if (moved_.empty()) return;
  const size_t count = moved_.size();
  workers_.for_ranges(count, kVertices, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) low_->hot[moved_[i].v].slot = static_cast<uint32_t>(i);
  });
  // Differences are applied in the order in which they are written, so this order must depend on
  // the ranges and not on the threads: for each range, first what it subtracts, then what it adds.
  const size_t ranges = Workers::ranges(count, kVertices);
  if (ranges == 1) {
    lift_range(0, count, 0, out_->deltas, out_->fresh);
  } else {
    Vec<Vec<Delta>> deltas(ranges), fresh(ranges);
    workers_.for_ranges_numbered(count, kVertices,
                                 [&](size_t range, size_t begin, size_t end, uint32_t hand) {
                                   lift_range(begin, end, hand, deltas[range], fresh[range]);
                                 });
    append_all(workers_, out_->deltas, deltas);
    append_all(workers_, out_->fresh, fresh);
  }
  workers_.for_ranges(count, kVertices, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) low_->hot[moved_[i].v].slot = kNone;
  });
}

// By new image, since the edges of an image must be summed up together. Vertices that are back at
// their old image did not move.
void LevelUpdate::sort_moved() {
  auto image = [&](const Moved& m) { return low_->role[m.v].image; };
  auto by_image = [&](const Moved& a, const Moved& b) {
    const Vertex x = image(a), y = image(b);
    return x != y ? x < y : a.v < b.v;
  };
  auto drop_unmoved = [&] {
    std::erase_if(moved_, [&](const Moved& m) {
      if (image(m) != m.old_image) return false;
      low_->cold[m.v].flags &= static_cast<uint8_t>(~kMoved);
      return true;
    });
  };
  auto is_unsorted = [&](size_t i) { return i > 0 && image(moved_[i]) < image(moved_[i - 1]); };
  if (moved_.size() < Workers::range_size(kMany)) {
    drop_unmoved();
    for (size_t i = 0; i < moved_.size(); ++i) {
      if (is_unsorted(i)) return std::sort(moved_.begin(), moved_.end(), by_image);
    }
    return;
  }
  std::atomic<bool> all_moved{true}, sorted{true};
  workers_.for_ranges(moved_.size(), kMany, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      if (image(moved_[i]) == moved_[i].old_image)
        all_moved.store(false, std::memory_order_relaxed);
      if (is_unsorted(i)) sorted.store(false, std::memory_order_relaxed);
    }
  });
  if (!all_moved) drop_unmoved();
  if (sorted) return;
  const size_t count = moved_.size();
  const KeyRanges ranges(high_->slots(), count, kMany);
  Vec<Moved> parted(count);
  const Vec<size_t> begins = partition(
      workers_, count, ranges.buckets, parted.data(),
      [&](size_t i) { return ranges.of(std::min(image(moved_[i]), high_->slots())); },
      [&](size_t i) { return moved_[i]; }, [&](size_t read) { work(read); });
  workers_.run(ranges.buckets, [&](size_t bucket, uint32_t) {
    std::sort(parted.begin() + begins[bucket], parted.begin() + begins[bucket + 1], by_image);
  });
  moved_.swap(parted);
}

// Images that begin in the range.
void LevelUpdate::lift_range(size_t begin, size_t end, uint32_t hand, Vec<Delta>& deltas,
                             Vec<Delta>& fresh) {
  auto continues = [&](size_t i) {
    const Vertex image = low_->role[moved_[i].v].image;
    return image != kNone && low_->role[moved_[i - 1].v].image == image;
  };
  while (begin > 0 && begin < end && continues(begin)) ++begin;
  if (begin == end) return;
  while (end < moved_.size() && continues(end)) ++end;
  fit(sums_[hand], *high_);
  subtract_moved(begin, end, hand, deltas);
  add_moved(begin, end, hand, deltas, fresh);
}

// The edges of removed images are removed with them.
void LevelUpdate::subtract_moved(size_t begin, size_t end, uint32_t hand, Vec<Delta>& deltas) {
  Sums& sums = sums_[hand];
  auto gone = [&](Vertex g) { return g == kNone || high_->cold[g].state == State::kRemoved; };
  for (size_t i = begin; i < end; ++i) {
    const auto [v, from] = moved_[i];
    if (gone(from)) continue;
    if (Workers::is_caller(hand)) work(4 * size_t{low_->cold[v].used});
    for (const Entry& e : low_->edges(v)) {
      const Vertex y = e.neighbour;
      const uint32_t slot = low_->hot[y].slot;
      const bool moved = slot != kNone;
      const Vertex other = moved ? moved_[slot].old_image : low_->role[y].image;
      if (other == from || gone(other) || (moved && y < v)) continue;
      sums.add(other, e.weight);
    }
    sums.flush([&](Vertex other, Weight w) {
      high_->prefetch(other);
      deltas.push_back({from, other, -w});
    });
  }
}

// An edge of a created image is fresh, and must be written once with its full weight: by the
// created end, and of two created ends by the one with the larger handle.
void LevelUpdate::add_moved(size_t begin, size_t end, uint32_t hand, Vec<Delta>& deltas,
                            Vec<Delta>& fresh) {
  Sums& sums = sums_[hand];
  const bool any = !out_->created.empty();
  auto created = [&](Vertex g) { return any && high_->cold[g].state == State::kCreated; };
  for (size_t i = begin, j; i < end; i = j) {
    const Vertex to = low_->role[moved_[i].v].image;
    const bool new_image = to != kNone && created(to);
    for (j = i; j < end && low_->role[moved_[j].v].image == to; ++j) {
      if (to == kNone) continue;
      if (Workers::is_caller(hand)) work(4 * size_t{low_->cold[moved_[j].v].used});
      for (const Entry& e : low_->edges(moved_[j].v)) {
        const Vertex other = low_->role[e.neighbour].image;
        if (other == kNone || other == to) continue;
        if (low_->hot[e.neighbour].slot != kNone) {
          const bool other_new = created(other);
          if (new_image != other_new ? other_new : other > to) continue;
        }
        sums.add(other, e.weight);
      }
    }
    sums.flush([&](Vertex other, Weight w) {
      high_->prefetch(other);
      (new_image || created(other) ? fresh : deltas).push_back({to, other, w});
    });
  }
}

}  // namespace dynhac
