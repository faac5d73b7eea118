// Random batches of changes of a graph, with weights of several kinds.

#ifndef DYNHAC_TESTS_RANDOM_BATCHES_H_
#define DYNHAC_TESTS_RANDOM_BATCHES_H_

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/tests/engine_world.h"

namespace dynhac::testing {

enum class Weights { kEqual, kFew, kMany, kWide };

inline double draw(Random& random, Weights kind) {
  switch (kind) {
    case Weights::kEqual:
      return 0.5;
    case Weights::kFew:
      return 0.25 * static_cast<double>(1 + random.below(4));
    case Weights::kMany:
      return static_cast<double>(1 + random.below(1000000)) * 1e-6;
    case Weights::kWide:
      return std::pow(2.0, -static_cast<double>(random.below(2500)) / 100);
  }
  return 1;
}

// About `ops` operations of each kind.
inline BatchData random_batch(Random& random, const World& world, Weights kind, int64_t target,
                              int64_t ops) {
  BatchData batch;
  std::set<int64_t> ids = world.ids;
  auto edges = world.edges;
  const int64_t size = static_cast<int64_t>(ids.size());
  const int64_t removals = size == 0 ? 0 : random.below(size > target ? 2 * ops : ops);
  std::set<int64_t> removed;
  for (int64_t i = 0; i < removals && !ids.empty(); ++i) {
    const int64_t id = random.pick(ids);
    ids.erase(id);
    removed.insert(id);
    batch.remove.push_back(id);
  }
  if (!edges.empty() && random.below(3) == 0) {
    for (int64_t i = random.below(2 * ops); i-- > 0;) {
      const auto& [pair, weight] = random.pick(edges);
      batch.remove_u.push_back(pair.second);
      batch.remove_v.push_back(pair.first);
    }
  }
  std::map<std::pair<int64_t, int64_t>, double> set;
  for (int64_t i = random.below(size < target ? 3 * ops : ops); i-- > 0;) {
    int64_t id = world.next_id + static_cast<int64_t>(batch.add.size()) + 1000;
    if (!removed.empty() && random.below(4) == 0) id = *removed.begin(), removed.erase(id);
    batch.add.push_back(id);
    for (int64_t k = random.below(6); k-- > 0 && !ids.empty();) {
      const int64_t other = random.below(3) == 0 ? *ids.begin() : random.pick(ids);
      set[std::minmax(id, other)] = draw(random, kind);
    }
    ids.insert(id);
  }
  for (int64_t k = random.below(2 * ops); k-- > 0 && ids.size() > 1;) {
    const int64_t a = random.pick(ids), b = random.pick(ids);
    if (a != b) set[std::minmax(a, b)] = draw(random, kind);
  }
  for (const auto& [pair, w] : set) {
    if (random.below(2)) batch.edge(pair.first, pair.second, w);
    if (random.below(2) || batch.u.empty() || batch.u.back() != pair.first ||
        batch.v.back() != pair.second) {
      batch.edge(pair.second, pair.first, w);
    }
  }
  return batch;
}

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_RANDOM_BATCHES_H_
