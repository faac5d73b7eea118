#include "core/points/point_search.h"

#include <algorithm>
#include <utility>

#include "core/points/point_model.h"

namespace dynhac {

void fill(NeighborIndex& index, const std::shared_ptr<const PointTable>& table, Poll* poll) {
  index.read_vectors_from(table);
  const Vec<int64_t> used = table->used();
  if (used.empty()) return;
  begin_phase(poll, phases::kIndexing, used.size());
  index.add(used, table->vectors_of(used), poll);
}

SearchResult search(NeighborIndex& index, std::span<const float> vectors, size_t dimension,
                    size_t k, Poll* poll) {
  const size_t n = vectors.size() / dimension;
  SearchResult result{Buffer<int64_t>(n * k), Buffer<double>(n * k), k};
  if (k == 0 || n == 0) return result;
  if (n > 1) begin_phase(poll, phases::kSearching, n);
  index.query(vectors, k, result.slots, result.distances, poll);
  if (poll != nullptr) poll->check();
  return result;
}

void sort_rows(SearchResult& result) {
  struct Found {
    bool missing;
    double distance;
    int64_t slot;
    auto operator<=>(const Found&) const = default;
  };
  Vec<Found> row(result.width);
  for (size_t begin = 0; begin < result.slots.size(); begin += result.width) {
    for (size_t i = 0; i < result.width; ++i) {
      const int64_t slot = result.slots[begin + i];
      row[i] = {slot < 0, slot < 0 ? 0 : result.distances[begin + i], slot};
    }
    auto before = [](const Found& a, const Found& b) { return (a <=> b) < 0; };
    if (std::ranges::is_sorted(row, before)) continue;
    std::ranges::sort(row, before);
    for (size_t i = 0; i < result.width; ++i) {
      result.slots[begin + i] = row[i].slot;
      result.distances[begin + i] = row[i].distance;
    }
  }
}

NearestPoints PointModel::nearest(std::span<const float> vectors, size_t k, Poll* poll) {
  NearestPoints nearest;
  if (table_ == nullptr || vectors.empty()) return nearest;
  const size_t n = vectors.size() / table_->dimension();
  nearest.width = std::min(k, table_->size());
  nearest.counts.resize(n);
  if (nearest.width == 0) return nearest;

  // While the index is lost, every search has one of its own: reading changes nothing.
  std::shared_ptr<NeighborIndex> index = index_.index;
  if (index_lost_ || index == nullptr) {
    index = chooser_.choose(table_->dimension(), table_->size(), index_.name, false).index;
    fill(*index, table_, poll);
  }
  SearchResult result = search(*index, vectors, table_->dimension(), nearest.width, poll);
  sort_rows(result);

  Vec<int64_t> slots;
  Vec<double> similarities;
  slots.reserve(result.slots.size());
  similarities.reserve(result.slots.size());
  for (size_t i = 0; i < result.slots.size(); ++i) {
    if (result.slots[i] < 0) continue;
    ++nearest.counts[i / nearest.width];
    slots.push_back(result.slots[i]);
    similarities.push_back(result.distances[i]);
  }
  Workers workers(engine_.threads());
  similarity_.apply(similarities, workers);
  table_->to_keys(slots, workers);
  nearest.distances.assign(result.distances.begin(), result.distances.end());
  nearest.keys.resize(n * nearest.width);
  nearest.similarities.resize(n * nearest.width);
  for (size_t row = 0, from = 0; row < n; ++row) {
    const auto count = static_cast<size_t>(nearest.counts[row]);
    const auto to = static_cast<ptrdiff_t>(row * nearest.width);
    const auto first = static_cast<ptrdiff_t>(from);
    std::copy_n(slots.begin() + first, count, nearest.keys.begin() + to);
    std::copy_n(similarities.begin() + first, count, nearest.similarities.begin() + to);
    from += count;
  }
  return nearest;
}

Vec<Placement> PointModel::place(const NearestPoints& nearest, Poll* poll) const {
  Vec<Placement> placements;
  placements.reserve(nearest.counts.size());
  Vec<int64_t> keys;
  Vec<double> weights;
  Vec<size_t> places;  // of the edges in the rows
  for (size_t row = 0; row < nearest.counts.size(); ++row) {
    keys.clear();
    weights.clear();
    places.clear();
    const size_t begin = row * nearest.width;
    for (size_t i = begin; i < begin + static_cast<size_t>(nearest.counts[row]); ++i) {
      if (!(nearest.similarities[i] >= rules_.least_weight)) continue;
      keys.push_back(nearest.keys[i]);
      weights.push_back(nearest.similarities[i]);
      places.push_back(i);
    }
    try {
      placements.push_back(engine_.place(keys, weights));
    } catch (const BatchError& error) {
      throw BatchError(error.kind, places[static_cast<size_t>(error.index)]);
    }
    Placement& placement = placements.back();
    if (placement.edge != Placement::kNoEdge) placement.edge = places[placement.edge];
    if (poll != nullptr) poll->check();
  }
  return placements;
}

}  // namespace dynhac
