// Turns moves of vertices between groups into weight changes between images.
//
// Both passes use the present weights; changes of weights were passed up, between the old images,
// when they were applied. Weights are summed up per image before they are written, and every edge
// is counted once: if both ends moved, at one of them.

#include <algorithm>

#include "core/hierarchy/level_update.h"

namespace dynhac {

void LevelUpdate::lift() {
  std::erase_if(moved_, [&](const Moved& m) {
    if (low_->role[m.v].image != m.old_image) return false;
    low_->cold[m.v].flags &= static_cast<uint8_t>(~kMoved);
    return true;
  });
  if (moved_.empty()) return;
  // By new image, since the edges of an image must be summed up within one piece.
  auto by_image = [&](const Moved& a, const Moved& b) {
    const Vertex x = low_->role[a.v].image, y = low_->role[b.v].image;
    return x != y ? x < y : a.v < b.v;
  };
  if (!std::is_sorted(moved_.begin(), moved_.end(), by_image)) {
    std::sort(moved_.begin(), moved_.end(), by_image);
  }
  for (uint32_t i = 0; i < moved_.size(); ++i) low_->hot[moved_[i].v].slot = i;

  fit_sums();
  lift_pieces();
  for (const Moved& m : moved_) low_->hot[m.v].slot = kNone;
}

// Differences are applied in the order in which they are written, so this order must depend on the
// pieces and not on the threads: for each piece, first what it subtracts, then what it adds.
void LevelUpdate::lift_pieces() {
  constexpr size_t kPiece = 1024;
  cuts_.assign(1, 0);
  for (size_t i = kPiece; i < moved_.size(); ++i) {
    if (i - cuts_.back() >= kPiece &&
        low_->role[moved_[i].v].image != low_->role[moved_[i - 1].v].image) {
      cuts_.push_back(i);
    }
  }
  cuts_.push_back(moved_.size());
  // Only the calling thread polls.
  auto lift_piece = [&](size_t p, uint32_t thread, Vec<Delta>& deltas, Vec<Delta>& fresh) {
    subtract_moved(cuts_[p], cuts_[p + 1], thread, deltas);
    add_moved(cuts_[p], cuts_[p + 1], thread, deltas, fresh);
  };
  const size_t count = cuts_.size() - 1;
  if (count == 1 || workers_.count() == 1) {
    for (size_t p = 0; p < count; ++p) {
      lift_piece(p, 0, out_->deltas, out_->fresh);
    }
    return;
  }
  struct Piece {
    Vec<Delta> deltas, fresh;
  };
  Vec<Piece> pieces(count);
  workers_.run(count, [&](size_t p, uint32_t thread) {
    lift_piece(p, thread, pieces[p].deltas, pieces[p].fresh);
  });
  for (Piece& p : pieces) {
    out_->deltas.insert(out_->deltas.end(), p.deltas.begin(), p.deltas.end());
    out_->fresh.insert(out_->fresh.end(), p.fresh.begin(), p.fresh.end());
    p = Piece();
  }
}

// The edges of removed images are removed with them.
void LevelUpdate::subtract_moved(size_t begin, size_t end, uint32_t thread, Vec<Delta>& deltas) {
  Sums& sums = sums_[thread];
  auto gone = [&](Vertex g) { return g == kNone || high_->cold[g].state == State::kRemoved; };
  for (size_t i = begin; i < end; ++i) {
    const auto [v, from] = moved_[i];
    if (gone(from)) continue;
    if (thread == 0) work(4 * size_t{low_->cold[v].used});
    for (const Entry& e : low_->edges(v)) {
      const Vertex y = e.neighbour;
      const uint32_t slot = low_->hot[y].slot;
      const bool moved = slot != kNone;
      const Vertex other = moved ? moved_[slot].old_image : low_->role[y].image;
      if (other == from || gone(other) || (moved && y < v)) continue;
      sums.add(other, e.weight);
    }
    sums.flush([&](Vertex other, Weight w) { deltas.push_back({from, other, -w}); });
  }
}

// An edge of a created image is fresh, and must be written once with its full weight: by the
// created end, and of two created ends by the one with the larger handle.
void LevelUpdate::add_moved(size_t begin, size_t end, uint32_t thread, Vec<Delta>& deltas,
                            Vec<Delta>& fresh) {
  Sums& sums = sums_[thread];
  const bool any = !out_->created.empty();
  auto created = [&](Vertex g) { return any && high_->cold[g].state == State::kCreated; };
  for (size_t i = begin, j; i < end; i = j) {
    const Vertex to = low_->role[moved_[i].v].image;
    const bool new_image = to != kNone && created(to);
    for (j = i; j < end && low_->role[moved_[j].v].image == to; ++j) {
      if (to == kNone) continue;
      if (thread == 0) work(4 * size_t{low_->cold[moved_[j].v].used});
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
      (new_image || created(other) ? fresh : deltas).push_back({to, other, w});
    });
  }
}

}  // namespace dynhac
