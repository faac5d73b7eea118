#include "core/points/repair.h"

#include <algorithm>

namespace dynhac {

Vec<int64_t> points_to_repair(const Engine& engine, const PointTable& table,
                              std::span<const int64_t> leaving, const WeightedEdges& edges,
                              int64_t enough) {
  const Engine::Degrees low = engine.low_degrees_without(table.keys_of(leaving), enough);
  if (low.keys.empty()) return {};

  struct Neighbour {
    int64_t slot, degree;
    bool operator<(const Neighbour& other) const { return slot < other.slot; }
  };
  Vec<Neighbour> found;
  found.reserve(low.keys.size());
  for (size_t i = 0; i < low.keys.size(); ++i) {
    found.push_back({table.find(low.keys[i]), low.degrees[i]});
  }
  std::sort(found.begin(), found.end());
  const auto place = [&](int64_t slot) -> Neighbour* {
    const auto at = std::lower_bound(found.begin(), found.end(), Neighbour{slot, 0});
    return at != found.end() && at->slot == slot ? &*at : nullptr;
  };
  for (const Buffer<int64_t>* ends : {&edges.u, &edges.v}) {
    for (const int64_t slot : *ends) {
      if (Neighbour* neighbour = place(slot)) ++neighbour->degree;
    }
  }
  Vec<int64_t> slots;
  for (const Neighbour& neighbour : found) {
    if (neighbour.degree < enough) slots.push_back(neighbour.slot);
  }
  return slots;
}

}  // namespace dynhac
