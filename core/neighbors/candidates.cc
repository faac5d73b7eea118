#include "core/neighbors/candidates.h"

#include <algorithm>

namespace dynhac {

void Candidates::prune() {
  if (list_.size() > k_) {
    uppers_.clear();
    for (const Candidate& candidate : list_) uppers_.push_back(candidate.key.upper);
    const auto last = uppers_.begin() + static_cast<ptrdiff_t>(k_) - 1;
    std::nth_element(uppers_.begin(), last, uppers_.end());
    limit_ = std::min(limit_, query_.limit_of_key(*last));
    std::erase_if(list_, [&](const Candidate& c) { return c.key.lower > limit_; });
  }
  room_ = std::max(room_, 2 * list_.size());
}

std::span<const Candidates::Candidate> Candidates::sorted() {
  prune();
  std::ranges::sort(list_, [](const Candidate& a, const Candidate& b) {
    return a.key.lower < b.key.lower || (a.key.lower == b.key.lower && a.place < b.place);
  });
  return list_;
}

void nearest(Candidates& candidates, const DistanceFrom& distance, const DistinctVectors& vectors,
             std::span<int64_t> slots, std::span<double> distances) {
  struct Found {
    double distance;
    int64_t slot;
    bool operator<(const Found& other) const {
      return distance < other.distance || (distance == other.distance && slot < other.slot);
    }
  };
  const size_t k = slots.size();
  Vec<Found> best;  // a heap, the farthest first
  best.reserve(k);
  double limit = std::numeric_limits<double>::infinity();
  for (const Candidates::Candidate& candidate : candidates.sorted()) {
    if (double{candidate.key.lower} > limit) break;
    const double d = distance.to(vectors.row(candidate.place));
    vectors.each_slot(candidate.place, [&](int64_t slot) {
      const Found found{d, slot};
      if (best.size() == k) {
        if (!(found < best.front())) return false;
        std::pop_heap(best.begin(), best.end());
        best.pop_back();
      }
      best.push_back(found);
      std::push_heap(best.begin(), best.end());
      return true;
    });
    if (best.size() == k) limit = candidates.query().limit(best.front().distance);
  }
  std::sort_heap(best.begin(), best.end());
  for (size_t i = 0; i < k; ++i) {
    const bool found = i < best.size();
    slots[i] = found ? best[i].slot : -1;
    distances[i] = found ? best[i].distance : std::numeric_limits<double>::infinity();
  }
}

void first_slots(const DistinctVectors& vectors, double distance, std::span<int64_t> slots,
                 std::span<double> distances) {
  size_t count = 0;
  for (size_t slot = 0; slot < vectors.top() && count < slots.size(); ++slot) {
    if (!vectors.holds(static_cast<int64_t>(slot))) continue;
    slots[count] = static_cast<int64_t>(slot);
    distances[count++] = distance;
  }
  std::ranges::fill(slots.subspan(count), -1);
  std::ranges::fill(distances.subspan(count), std::numeric_limits<double>::infinity());
}

}  // namespace dynhac
