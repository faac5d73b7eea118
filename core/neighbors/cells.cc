#include "core/neighbors/cells.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/flat_map.h"
#include "core/base/polled_loop.h"

namespace dynhac {
namespace {

double checked(double recall) {
  if (!(recall > 0 && recall <= 1)) {
    throw std::invalid_argument("recall is " + std::to_string(recall) +
                                "; it must be > 0 and <= 1");
  }
  return recall;
}

struct Listed : VectorRows {
  Listed(const DistinctVectors& vectors, std::span<const uint32_t> places)
      : vectors(vectors), places(places) {}
  const float* row(int64_t number) const override {
    return vectors.row(places[static_cast<size_t>(number)]);
  }
  const DistinctVectors& vectors;
  std::span<const uint32_t> places;
};

}  // namespace

Cells::Cells(Metric metric, size_t dimension, double recall, uint32_t threads, const Kernel& kernel)
    : vectors_(dimension),
      store_(Coder(metric, dimension, kernel), vectors_),
      reach_(checked(recall)),
      workers_(threads) {}

void Cells::read_vectors_from(std::shared_ptr<const VectorRows> rows) {
  if (size() > 0) throw std::logic_error("an index that has vectors was given others");
  vectors_ = DistinctVectors(dimension());
  vectors_.read_from(std::move(rows));
}

void Cells::add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) {
  if (vectors.size() != slots.size() * dimension()) throw std::invalid_argument("vectors");
  vectors_.require_new(slots);
  require_finite(vectors, dimension());
  if (slots.empty()) return;
  vectors_.reserve(slots);
  const size_t first = vectors_.n_places();
  store_.reserve_places(first + slots.size());
  size_t added = 0;
  try {
    Pace pace(poll);
    for (; added < slots.size(); ++added) {
      vectors_.add(slots[added], vectors.data() + added * dimension());
      pace.step(dimension());
    }
    put_new(first, poll);
  } catch (...) {
    while (added > 0) vectors_.remove(slots[--added]);
    throw;
  }
  // The change is made. What follows may fail, and leaves an index that can be used.
  const size_t new_places = vectors_.n_places() - first;
  Vec<uint32_t> touched;
  if (new_places <= first) {
    for (size_t place = first; place < vectors_.n_places(); ++place) {
      touched.push_back(store_.cell_of(static_cast<uint32_t>(place)));
    }
    balance(store_, touched, poll);
  }
  take_samples(new_places, poll);
}

// Puts the places from `first` on into cells. All or nothing.
void Cells::put_new(size_t first, Poll* poll) {
  const size_t count = vectors_.n_places(), new_places = count - first;
  if (new_places == 0) return;
  if (new_places > first) {
    store_ = build(poll);
    additions_left_ = count;
    return;
  }
  Coder coder = store_.coder();
  if (new_places > additions_left_) coder = new_coder(places_by_slot());
  Vec<uint32_t> places(new_places);
  for (size_t i = 0; i < new_places; ++i) places[i] = static_cast<uint32_t>(first + i);
  const Vec<uint32_t> cells = find_cells(store_, places, poll);
  Vec<size_t> sizes(store_.n_cells());
  for (const uint32_t cell : cells) ++sizes[cell];
  for (size_t cell = 0; cell < sizes.size(); ++cell) {
    if (sizes[cell] > 0) store_.reserve_members(cell, store_.cell(cell).size() + sizes[cell]);
  }
  // Nothing throws from here on.
  store_.resize_places(count);
  for (size_t i = 0; i < new_places; ++i) store_.put(places[i], cells[i]);
  if (new_places > additions_left_) {
    store_.recode(std::move(coder));
    additions_left_ = count;
  } else {
    additions_left_ -= new_places;
  }
}

// All places, ordered by their smallest slots: the same, however places are numbered.
Vec<uint32_t> Cells::places_by_slot() const {
  Vec<uint32_t> places;
  places.reserve(vectors_.n_places());
  for (size_t slot = 0; slot < vectors_.top(); ++slot) {
    const uint32_t place = vectors_.place_of(static_cast<int64_t>(slot));
    if (place != kNone && vectors_.first_slot(place) == slot) places.push_back(place);
  }
  return places;
}

Coder Cells::new_coder(std::span<const uint32_t> places) const {
  const Coder& old = store_.coder();
  Coder coder(old.metric(), dimension(), old.kernel());
  coder.centre_on(Listed(vectors_, places), places.size());
  return coder;
}

void Cells::remove(std::span<const int64_t> slots, Poll* poll) {
  vectors_.require_held(slots);
  if (poll != nullptr) poll->check();
  Vec<uint32_t> touched;
  touched.reserve(slots.size());
  for (const int64_t slot : slots) {
    const uint32_t place = vectors_.place_of(slot);
    if (vectors_.has_one_slot(place)) {
      touched.push_back(store_.cell_of(place));
      store_.take(place);
    }
    const DistinctVectors::Removed removed = vectors_.remove(slot);
    if (removed.moved != kNone) store_.rename(removed.moved, removed.place);
    store_.resize_places(vectors_.n_places());
  }
  // The change is made, as in `add`.
  const size_t changes = touched.size();
  balance(store_, touched, poll);
  take_samples(changes, poll);
}

void Cells::query(std::span<const float> vectors, size_t k, std::span<int64_t> slots,
                  std::span<double> distances, Poll* poll) {
  if (vectors.size() % dimension() != 0) throw std::invalid_argument("vectors");
  require_finite(vectors, dimension());
  const size_t n = vectors.size() / dimension();
  if (slots.size() != n * k || distances.size() != n * k) throw std::invalid_argument("answers");
  if (k == 0 || n == 0) return;
  const double reach = reach_.value();
  const CellSearch search(store_, vectors_, reach > 1);
  const size_t step = std::min(search.rows_at_once(), n / (2 * workers_.count()) + 1);
  const size_t pieces = (n + step - 1) / step;
  if (pieces == 1) {
    search.search({vectors, k, slots, distances}, reach);
    return;
  }
  // Rows of the same cell together: they examine the same cells.
  struct Row {
    uint32_t cell;
    size_t number;
  };
  Vec<Row> order(n);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t place = vectors_.find(vectors.data() + i * dimension());
    order[i] = {place == kNone ? kNone : store_.cell_of(place), i};
  }
  std::ranges::sort(order, [](const Row& a, const Row& b) {
    return a.cell < b.cell || (a.cell == b.cell && a.number < b.number);
  });
  run_polled(workers_, pieces, n, poll, [&](size_t piece) {
    const auto rows = std::span(order).subspan(piece * step, std::min(step, n - piece * step));
    Vec<float> queries;
    queries.reserve(rows.size() * dimension());
    for (const Row& row : rows) {
      const auto query = vectors.subspan(row.number * dimension(), dimension());
      queries.insert(queries.end(), query.begin(), query.end());
    }
    Vec<int64_t> found(rows.size() * k);
    Vec<double> lengths(rows.size() * k);
    search.search({queries, k, found, lengths}, reach);
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t to = rows[i].number * k;
      std::copy_n(found.data() + i * k, k, slots.data() + to);
      std::copy_n(lengths.data() + i * k, k, distances.data() + to);
    }
  });
}

// Compares searches for some vectors with scans of all, and learns from it.
void Cells::take_samples(size_t changes, Poll* poll) {
  const size_t n = vectors_.n_places(), count = reach_.due(changes, n);
  if (n_cells() < 2 || count == 0) return;
  Vec<uint32_t> places(count);
  for (size_t i = 0; i < count; ++i) {
    size_t at = mix_bits(reach_.count() + i + 1) % n, cell = 0;
    for (; at >= store_.cell(cell).size(); ++cell) at -= store_.cell(cell).size();
    places[i] = store_.cell(cell).members[at];
  }
  Vec<float> needed(count * Reach::kNeighbors);
  Vec<size_t> sizes(count);
  const CellSearch search(store_, vectors_, false);
  run_polled(workers_, count, 0, poll, [&](size_t i) {
    sizes[i] = needed_reach(search, places[i],
                            std::span(needed).subspan(i * Reach::kNeighbors, Reach::kNeighbors));
  });
  for (size_t i = 0; i < count; ++i) {
    reach_.add(std::span(needed).subspan(i * Reach::kNeighbors, sizes[i]));
  }
  reach_.learn();
}

// Writes the reach that each of the nearest neighbours of a vector needs, and returns how many
// these are.
size_t Cells::needed_reach(const CellSearch& search, uint32_t place,
                           std::span<float> needed) const {
  constexpr size_t k = Reach::kNeighbors + 1;  // the vector itself is found, too
  const std::span query(vectors_.row(place), dimension());
  int64_t slots[k], found[k];
  double distances[k], found_distances[k];
  search.scan_all({query, k, slots, distances});
  uint32_t neighbors[k];
  int64_t neighbor_slots[k];
  size_t count = 0;
  double limit = 0;
  for (size_t i = 0; i < k && count < Reach::kNeighbors; ++i) {
    if (slots[i] < 0 || vectors_.place_of(slots[i]) == place) continue;
    neighbor_slots[count] = slots[i];
    neighbors[count++] = vectors_.place_of(slots[i]);
    limit = distances[i];
  }
  if (count == 0) return 0;
  constexpr auto kSteps = static_cast<double>(Reach::kSteps);
  const double most = search.most_reach(query, limit, std::span(neighbors).first(count));
  double reach = std::ceil(most * kSteps) / kSteps;
  std::fill_n(needed.begin(), count, static_cast<float>(reach));
  // What is found with so little of the wanted recall does not matter.
  const auto enough = static_cast<size_t>(reach_.recall() * 0.75 * static_cast<double>(count));
  for (size_t left = count; reach > 0 && left > enough;) {
    reach -= 1 / kSteps;
    search.search({query, k, found, found_distances}, reach);
    left = 0;
    for (size_t i = 0; i < count; ++i) {
      const bool is_found = std::ranges::find(found, neighbor_slots[i]) != std::end(found);
      if (is_found && needed[i] <= static_cast<float>(reach + 1 / kSteps)) {
        needed[i] = static_cast<float>(reach);
        ++left;
      }
    }
  }
  return count;
}

}  // namespace dynhac
