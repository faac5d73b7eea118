#include "core/points/nearest_edges.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/base/parallel.h"
#include "core/hierarchy/types.h"

namespace dynhac {

namespace {

// Small numbers for slots, so that arrays can be indexed by them: the slots themselves, unless they
// are few among many.
class Numbering {
 public:
  Numbering(const FoundRows& rows, Workers& workers) {
    constexpr size_t kSlots = size_t{1} << 16;
    int64_t largest = -1;
    for (const auto& slots : {rows.own, rows.found}) {
      Vec<int64_t> most(Workers::ranges(slots.size(), kSlots), -1);
      workers.for_ranges_numbered(slots.size(), kSlots,
                                  [&](size_t range, size_t begin, size_t end, uint32_t) {
                                    for (size_t i = begin; i < end; ++i)
                                      most[range] = std::max(most[range], slots[i]);
                                  });
      for (const int64_t slot : most) largest = std::max(largest, slot);
    }
    count_ = static_cast<size_t>(largest) + 1;
    if (count_ / 4 <= rows.found.size()) return;
    slots_.assign(rows.own.begin(), rows.own.end());
    slots_.insert(slots_.end(), rows.found.begin(), rows.found.end());
    std::sort(slots_.begin(), slots_.end());
    slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
    count_ = slots_.size();
  }

  size_t count() const { return count_; }

  size_t of(int64_t slot) const {
    if (slots_.empty()) return static_cast<size_t>(slot);
    return static_cast<size_t>(std::lower_bound(slots_.begin(), slots_.end(), slot) -
                               slots_.begin());
  }

 private:
  size_t count_;
  Vec<int64_t> slots_;  // ascending, if they are numbered in this order
};

// Calls back with the places of the first `most` others in a row.
template <class Callback>
void each_other(const FoundRows& rows, size_t most, size_t row, Callback callback) {
  size_t left = most;
  for (size_t i = row * rows.width; i < (row + 1) * rows.width && left > 0; ++i) {
    if (rows.found[i] < 0 || rows.found[i] == rows.own[row]) continue;
    callback(i);
    --left;
  }
}

// Whether a slot is one of the first `most` others in a row.
bool has_other(const FoundRows& rows, size_t most, size_t row, int64_t other) {
  size_t left = most;
  for (size_t i = row * rows.width; i < (row + 1) * rows.width && left > 0; ++i) {
    if (rows.found[i] == other) return true;
    left -= rows.found[i] >= 0 && rows.found[i] != rows.own[row];
  }
  return false;
}

// Of one piece of parallel work.
constexpr size_t kRange = 512;  // rows
constexpr size_t kWeights = size_t{1} << 15;

}  // namespace

NearestEdges nearest_edges(const FoundRows& rows, size_t most, Poll* poll, uint32_t threads) {
  const size_t n = rows.own.size();
  if (rows.found.size() != n * rows.width || rows.distances.size() != rows.found.size()) {
    throw std::invalid_argument("lengths");
  }
  for (const int64_t slot : rows.own) {
    if (slot < 0) throw std::invalid_argument("slot");
  }
  NearestEdges edges;
  auto make_room_for = [&](size_t count) {
    edges.u.renew(count);
    edges.v.renew(count);
    edges.distances.renew(count);
  };
  if (n == 1) {
    make_room_for(rows.width);
    size_t count = 0;
    each_other(rows, most, 0, [&](size_t i) {
      edges.u[count] = rows.own[0];
      edges.v[count] = rows.found[i];
      edges.distances[count++] = rows.distances[i];
    });
    edges.u.shrink(count);
    edges.v.shrink(count);
    edges.distances.shrink(count);
    return edges;
  }
  Workers workers(threads);
  const Workers::Session session(workers);
  const Numbering number(rows, workers);
  if (n >= kNone || number.count() >= kNone) throw std::invalid_argument("too many slots");
  Vec<uint32_t> row_of(number.count(), kNone);
  for (size_t row = 0; row < n; ++row)
    row_of[number.of(rows.own[row])] = static_cast<uint32_t>(row);
  // Which places of the rows are edges, and where those of every range of rows begin.
  Pace pace(poll);
  Buffer<uint8_t> kept(rows.found.size());
  Vec<size_t> begins(Workers::ranges(n, kRange) + 1, 0);
  workers.for_ranges_numbered(
      n, kRange, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
        std::fill(kept.data() + begin * rows.width, kept.data() + end * rows.width, uint8_t{0});
        size_t count = 0;
        for (size_t row = begin; row < end; ++row) {
          each_other(rows, most, row, [&](size_t i) {
            const uint32_t other = row_of[number.of(rows.found[i])];
            if (other < row && has_other(rows, most, other, rows.own[row])) return;
            kept[i] = 1;
            ++count;
          });
          if (Workers::is_caller(hand)) pace.step(16 * rows.width);
        }
        begins[range + 1] = count;
      });
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  make_room_for(begins.back());
  workers.for_ranges_numbered(n, kRange,
                              [&](size_t range, size_t begin, size_t end, uint32_t hand) {
                                size_t at = begins[range];
                                for (size_t i = begin * rows.width; i < end * rows.width; ++i) {
                                  if (!kept[i]) continue;
                                  edges.u[at] = rows.own[i / rows.width];
                                  edges.v[at] = rows.found[i];
                                  edges.distances[at++] = rows.distances[i];
                                }
                                if (Workers::is_caller(hand))
                                  pace.step(4 * (end - begin) * rows.width);
                              });
  return edges;
}

JoinedRows::JoinedRows(const FoundRows& first, const FoundRows& second)
    : own(first.own.begin(), first.own.end()), width(std::max(first.width, second.width)) {
  own.insert(own.end(), second.own.begin(), second.own.end());
  found.assign(own.size() * width, -1);
  distances.assign(found.size(), kInfinity);
  ptrdiff_t begin = 0;
  for (const FoundRows* rows : {&first, &second}) {
    for (size_t row = 0; row < rows->own.size(); ++row) {
      const auto from = static_cast<ptrdiff_t>(row * rows->width);
      std::copy_n(rows->found.begin() + from, rows->width, found.begin() + begin);
      std::copy_n(rows->distances.begin() + from, rows->width, distances.begin() + begin);
      begin += static_cast<ptrdiff_t>(width);
    }
  }
}

WeightedEdges weighted(NearestEdges edges, const Similarity& similarity, double least,
                       uint32_t threads) {
  Workers workers(threads);
  similarity.apply(edges.distances, workers);
  WeightedEdges kept{std::move(edges.u), std::move(edges.v), std::move(edges.distances)};
  std::atomic<bool> all{true};
  workers.for_ranges(kept.weights.size(), kWeights, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      if (!(kept.weights[i] >= least)) return all.store(false, std::memory_order_relaxed);
    }
  });
  if (all) return kept;
  size_t count = 0;
  for (size_t i = 0; i < kept.weights.size(); ++i) {
    if (!(kept.weights[i] >= least)) continue;
    kept.u[count] = kept.u[i];
    kept.v[count] = kept.v[i];
    kept.weights[count++] = kept.weights[i];
  }
  kept.u.shrink(count);
  kept.v.shrink(count);
  kept.weights.shrink(count);
  return kept;
}

}  // namespace dynhac
