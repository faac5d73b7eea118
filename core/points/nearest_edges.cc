#include "core/points/nearest_edges.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/hierarchy/types.h"

namespace dynhac {

namespace {

// Small numbers for slots, so that arrays can be indexed by them: the slots themselves, unless they
// are few among many.
class Numbering {
 public:
  explicit Numbering(const FoundRows& rows) {
    int64_t largest = -1;
    for (const auto& slots : {rows.own, rows.found}) {
      for (const int64_t slot : slots) largest = std::max(largest, slot);
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

// For every row the numbers of the points that have found its own in an earlier row.
class Claims {
 public:
  Claims(const FoundRows& rows, size_t most, const Numbering& number, Pace& pace)
      : begins_(rows.own.size() + 1) {
    const size_t n = rows.own.size();
    Vec<uint32_t> row_of(number.count(), kNone);
    for (size_t row = 0; row < n; ++row) {
      row_of[number.of(rows.own[row])] = static_cast<uint32_t>(row);
    }
    const auto each = [&](auto callback) {
      for (size_t row = 0; row < n; ++row) {
        each_other(rows, most, row, [&](size_t i) {
          const uint32_t claimed = row_of[number.of(rows.found[i])];
          if (claimed != kNone && claimed > row) callback(row, claimed);
        });
        pace.step(4 * rows.width);
      }
    };
    each([&](size_t, uint32_t claimed) { ++begins_[claimed + 1]; });
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    claims_.resize(begins_[n]);
    Vec<size_t> ends(begins_.begin(), begins_.end() - 1);
    each([&](size_t row, uint32_t claimed) {
      claims_[ends[claimed]++] = static_cast<uint32_t>(number.of(rows.own[row]));
    });
  }

  std::span<const uint32_t> on(size_t row) const {
    return std::span(claims_).subspan(begins_[row], begins_[row + 1] - begins_[row]);
  }

 private:
  Vec<size_t> begins_;
  Vec<uint32_t> claims_;
};

}  // namespace

NearestEdges nearest_edges(const FoundRows& rows, size_t most, Poll* poll) {
  const size_t n = rows.own.size();
  if (rows.found.size() != n * rows.width || rows.distances.size() != rows.found.size()) {
    throw std::invalid_argument("lengths");
  }
  for (const int64_t slot : rows.own) {
    if (slot < 0) throw std::invalid_argument("slot");
  }
  NearestEdges edges;
  const size_t largest = n * std::min(rows.width, most);
  edges.u.reserve(largest);
  edges.v.reserve(largest);
  edges.distances.reserve(largest);
  const auto emit = [&](size_t row, size_t i) {
    edges.u.push_back(rows.own[row]);
    edges.v.push_back(rows.found[i]);
    edges.distances.push_back(rows.distances[i]);
  };
  if (n == 1) {
    each_other(rows, most, 0, [&](size_t i) { emit(0, i); });
    return edges;
  }
  const Numbering number(rows);
  if (n >= kNone || number.count() >= kNone) throw std::invalid_argument("too many slots");
  Pace pace(poll);
  const Claims claims(rows, most, number, pace);
  Vec<uint32_t> claimed_by(number.count(), kNone);  // the latest row that a number has a claim on
  for (size_t row = 0; row < n; ++row) {
    for (const uint32_t other : claims.on(row)) claimed_by[other] = static_cast<uint32_t>(row);
    each_other(rows, most, row, [&](size_t i) {
      if (claimed_by[number.of(rows.found[i])] != row) emit(row, i);
    });
    pace.step(4 * rows.width);
  }
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

WeightedEdges weighted(NearestEdges edges, const Similarity& similarity, double least) {
  similarity.apply(edges.distances);
  WeightedEdges kept{std::move(edges.u), std::move(edges.v), std::move(edges.distances)};
  size_t count = 0;
  for (size_t i = 0; i < kept.weights.size(); ++i) {
    if (!(kept.weights[i] >= least)) continue;
    kept.u[count] = kept.u[i];
    kept.v[count] = kept.v[i];
    kept.weights[count++] = kept.weights[i];
  }
  kept.u.resize(count);
  kept.v.resize(count);
  kept.weights.resize(count);
  return kept;
}

}  // namespace dynhac
