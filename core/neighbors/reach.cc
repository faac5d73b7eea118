#include "core/neighbors/reach.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace dynhac {
namespace {

constexpr double kCaution = 0.75;  // the share of the misses that are allowed which is aimed at

}  // namespace

size_t Reach::due(size_t changes, size_t size) {
  if (exact() || size == 0) return 0;
  const size_t credit =
      std::min(static_cast<size_t>(state_.credit) + changes * kMost, kMost * size);
  state_.credit = static_cast<int64_t>(credit % size);
  return credit / size;
}

void Reach::add(std::span<const float> needed) {
  state_.needed.reserve(kMost * kNeighbors);
  state_.sizes.reserve(kMost);
  const size_t at = count() % kMost;
  if (at == n_samples()) {
    state_.needed.resize((at + 1) * kNeighbors);
    state_.sizes.resize(at + 1);
  }
  float* own = state_.needed.data() + at * kNeighbors;
  std::fill(std::copy(needed.begin(), needed.end(), own), own + kNeighbors, 0.0f);
  state_.sizes[at] = static_cast<int64_t>(needed.size());
  ++state_.count;
}

void Reach::learn() {
  if (exact() || n_samples() < kFewest) return;
  Vec<float> all;
  all.reserve(n_samples() * kNeighbors);
  for (size_t i = 0; i < n_samples(); ++i) {
    const float* needed = state_.needed.data() + i * kNeighbors;
    all.insert(all.end(), needed, needed + state_.sizes[i]);
  }
  if (all.empty()) return;
  const double missed = (1 - recall_) * kCaution * static_cast<double>(all.size());
  const auto last =
      all.end() - 1 - static_cast<ptrdiff_t>(std::min(static_cast<size_t>(missed), all.size() - 1));
  std::nth_element(all.begin(), last, all.end());
  value_ = *last;
  const auto found = std::ranges::count_if(all, [&](float needed) { return needed <= value_; });
  measured_ = static_cast<double>(found) / static_cast<double>(all.size());
}

void Reach::load(State state) {
  const size_t n = state.sizes.size();
  bool right = n <= kMost && state.needed.size() == n * kNeighbors &&
               state.count >= static_cast<int64_t>(n) &&
               (n == kMost || state.count <= static_cast<int64_t>(n)) && state.credit >= 0 &&
               state.credit < int64_t{1} << 40 && (!exact() || n == 0);
  for (size_t i = 0; right && i < n; ++i) {
    right = 0 <= state.sizes[i] && state.sizes[i] <= static_cast<int64_t>(kNeighbors);
  }
  for (const float needed : state.needed) right = right && std::fabs(needed) <= 1;
  if (!right) throw std::invalid_argument("the samples of its recall are not right");
  state_ = std::move(state);
  learn();
}

}  // namespace dynhac
