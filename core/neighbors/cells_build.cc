// Cells of many vectors at once: k-means on a sample, then every vector to its nearest centre.

#include <algorithm>

#include "core/base/polled_loop.h"
#include "core/neighbors/cells.h"

namespace dynhac {
namespace {

constexpr size_t kRounds = 5;          // of k-means
constexpr size_t kSampled = 32;        // vectors for each centre
constexpr size_t kPlacesAtOnce = 256;  // on one thread

}  // namespace

// Returns new cells for all places.
CellStore Cells::build(Poll* poll) const {
  const Vec<uint32_t> places = places_by_slot();
  CellStore store(new_coder(places), vectors_);
  store.reserve_places(places.size());
  store.resize_places(places.size());
  const size_t count = places.size() <= kMostMembers ? 1 : places.size() / kUsualMembers;
  choose_centres(store, places, count, poll);
  const Vec<uint32_t> cells = find_cells(store, places, poll);
  Vec<size_t> sizes(store.n_cells());
  for (const uint32_t cell : cells) ++sizes[cell];
  for (size_t cell = 0; cell < sizes.size(); ++cell) store.reserve_members(cell, sizes[cell]);
  for (size_t i = 0; i < places.size(); ++i) store.put_uncoded(places[i], cells[i]);
  run_polled(workers_, store.n_cells(), 0, poll, [&](size_t cell) {
    Vec<double> sums(dimension());
    store.encode(cell);
    store.recentre(cell, sums);
  });
  for (size_t cell = store.n_cells(); cell-- > 1;) {
    if (store.cell(cell).size() == 0) store.drop_cell(cell);
  }
  Vec<uint32_t> touched(store.n_cells());
  for (uint32_t cell = 0; cell < touched.size(); ++cell) touched[cell] = cell;
  balance(store, touched, poll);
  return store;
}

// Adds `count` cells, without members.
void Cells::choose_centres(CellStore& store, std::span<const uint32_t> places, size_t count,
                           Poll* poll) const {
  // Every so many of them: vectors often come in the order of their classes.
  const auto spread = [&](size_t i, size_t n) { return places[i * places.size() / n]; };
  for (size_t i = 0; i < count; ++i) {
    store.add_cell({store.row(spread(i, count)), dimension()});
  }
  if (count == 1) return;
  Vec<uint32_t> sample(std::min(places.size(), count * kSampled));
  for (size_t i = 0; i < sample.size(); ++i) sample[i] = spread(i, sample.size());
  Vec<Vec<const float*>> members(count);
  Vec<double> sums(dimension());
  Vec<float> mean(dimension());
  for (size_t round = 0; round < kRounds; ++round) {
    const Vec<uint32_t> cells = find_cells(store, sample, poll);
    for (Vec<const float*>& own : members) own.clear();
    for (size_t i = 0; i < sample.size(); ++i) members[cells[i]].push_back(store.row(sample[i]));
    for (size_t cell = 0; cell < count; ++cell) {
      if (members[cell].empty()) continue;  // its centre stays
      store.mean_of(members[cell], sums, mean);
      store.set_centre(cell, mean);
    }
  }
}

Vec<uint32_t> Cells::find_cells(const CellStore& store, std::span<const uint32_t> places,
                                Poll* poll) const {
  Vec<uint32_t> cells(places.size());
  const size_t pieces = (places.size() + kPlacesAtOnce - 1) / kPlacesAtOnce;
  run_polled(workers_, pieces, places.size(), poll, [&](size_t piece) {
    const size_t begin = piece * kPlacesAtOnce;
    const size_t count = std::min(kPlacesAtOnce, places.size() - begin);
    store.find_cells(places.subspan(begin, count), std::span(cells).subspan(begin, count));
  });
  return cells;
}

}  // namespace dynhac
