// The state of an index of cells, to be saved and loaded.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/polled_loop.h"
#include "core/neighbors/cells.h"

namespace dynhac {
namespace {

void expect(bool holds, const char* what) {
  if (!holds) {
    throw std::invalid_argument("the cells of its index are not right: " + std::string(what));
  }
}

template <class Numbers>
bool all_finite(const Numbers& numbers) {
  return std::ranges::all_of(numbers, [](auto number) { return std::isfinite(number); });
}

}  // namespace

Cells::State Cells::state() const {
  State state;
  state.slots.reserve(size());
  for (size_t number = 0; number < n_cells(); ++number) {
    const Cell& cell = store_.cell(number);
    for (const uint32_t place : cell.members) state.slots.push_back(vectors_.first_slot(place));
    state.sizes.push_back(static_cast<int64_t>(cell.size()));
    state.changes.push_back(static_cast<int64_t>(cell.changes));
    state.extents.push_back(cell.spread);
    state.extents.push_back(cell.radius);
    const auto centre = store_.centre(number);
    state.centres.insert(state.centres.end(), centre.begin(), centre.end());
  }
  for (size_t slot = 0; slot < vectors_.top(); ++slot) {
    const uint32_t place = vectors_.place_of(static_cast<int64_t>(slot));
    if (place != kNone && vectors_.first_slot(place) != slot) {
      state.slots.push_back(static_cast<int64_t>(slot));
    }
  }
  const auto centre = store_.coder().centre();
  state.centre.assign(centre.begin(), centre.end());
  state.unit = store_.coder().unit();
  state.additions_left = static_cast<int64_t>(additions_left_);
  state.reach = reach_.state();
  return state;
}

void Cells::load(const State& state, std::span<const float> vectors, Poll* poll) {
  if (size() > 0) throw std::logic_error("an index that has vectors was given others");
  const size_t n = state.sizes.size(), d = dimension();
  size_t distinct = 0;
  for (const int64_t size : state.sizes) {
    expect(0 <= size && static_cast<size_t>(size) <= state.slots.size(), "sizes");
    distinct += static_cast<size_t>(size);
  }
  expect(distinct <= state.slots.size() && (distinct > 0 || state.slots.empty()), "sizes");
  expect(state.changes.size() == n && state.extents.size() == 2 * n, "extents");
  expect(state.additions_left >= 0 &&
             std::ranges::all_of(state.changes, [](int64_t c) { return c >= 0; }),
         "changes");
  expect(state.centres.size() == n * d && state.centre.size() == d, "centres");
  expect(all_finite(state.centres) && all_finite(state.centre), "centres");
  expect(all_finite(state.extents) &&
             std::ranges::all_of(state.extents, [](double e) { return e >= 0; }),
         "extents");
  int exponent = 0;
  expect(state.unit > 0 && std::frexp(state.unit, &exponent) == 0.5 && std::abs(exponent) < 160,
         "unit");
  expect(std::ranges::all_of(state.centre, [](double x) { return std::fabs(x) <= 4; }), "centre");
  expect(vectors.size() == state.slots.size() * d, "vectors");
  vectors_.require_new(state.slots);
  require_finite(vectors, dimension());
  reach_.load(state.reach);

  intact_ = false;
  vectors_.reserve(state.slots);
  for (size_t i = 0; i < state.slots.size(); ++i) {
    const bool is_new = vectors_.add(state.slots[i], vectors.data() + i * d);
    expect(is_new == (i < distinct), "equal vectors");
  }
  for (size_t i = 0; i < distinct; ++i) {
    expect(vectors_.first_slot(static_cast<uint32_t>(i)) == state.slots[i], "equal vectors");
  }
  Coder coder = store_.coder();
  coder.set_centre(state.centre, state.unit);
  CellStore store(std::move(coder), vectors_);
  store.reserve_places(distinct);
  store.resize_places(distinct);
  uint32_t place = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t cell = store.add_cell(std::span(state.centres).subspan(i * d, d));
    store.reserve_members(cell, static_cast<size_t>(state.sizes[i]));
    for (int64_t j = 0; j < state.sizes[i]; ++j) store.put_uncoded(place++, cell);
    store.set_known(cell, {state.extents[2 * i], state.extents[2 * i + 1],
                           static_cast<uint64_t>(state.changes[i])});
  }
  std::atomic<bool> covered = true;
  run_polled(workers_, n, state.slots.size(), poll, [&](size_t cell) {
    store.encode(cell);
    if (!store.covers_members(cell)) covered = false;
  });
  expect(covered, "extents");
  store_ = std::move(store);
  additions_left_ = static_cast<size_t>(state.additions_left);
  intact_ = true;
}

Vec<float> Cells::vectors_of(std::span<const int64_t> slots) const {
  Vec<float> found;
  found.reserve(slots.size() * dimension());
  for (const int64_t slot : slots) {
    if (slot < 0 || !vectors_.holds(slot)) {
      throw SlotError("slot " + std::to_string(slot) + " is not held");
    }
    const float* vector = vectors_.row(vectors_.place_of(slot));
    found.insert(found.end(), vector, vector + dimension());
  }
  return found;
}

}  // namespace dynhac
