#include "core/points/repair.h"

#include <algorithm>

namespace dynhac {

Vec<int64_t> points_to_repair(const Engine& engine, const PointTable& table,
                              std::span<const int64_t> leaving, const WeightedEdges& edges,
                              int64_t enough) {
  const int64_t most = enough - 1 + static_cast<int64_t>(leaving.size());
  const Engine::Degrees near = engine.low_degrees_around(table.keys_of(leaving), most);
  if (near.keys.empty()) return {};

  struct Neighbour {
    int64_t slot, degree;
    bool operator<(const Neighbour& other) const { return slot < other.slot; }
  };
  Vec<Neighbour> found;
  found.reserve(near.keys.size());
  for (size_t i = 0; i < near.keys.size(); ++i) {
    found.push_back({table.find(near.keys[i]), near.degrees[i]});
  }
  std::sort(found.begin(), found.end());
  // Every point once: it is listed as often as it loses an edge.
  size_t count = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (count > 0 && found[count - 1].slot == found[i].slot) {
      --found[count - 1].degree;
    } else {
      found[count++] = {found[i].slot, found[i].degree - 1};
    }
  }
  found.resize(count);
  const auto place = [&](int64_t slot) -> Neighbour* {
    const auto at = std::lower_bound(found.begin(), found.end(), Neighbour{slot, 0});
    return at != found.end() && at->slot == slot ? &*at : nullptr;
  };
  for (const Vec<int64_t>* ends : {&edges.u, &edges.v}) {
    for (const int64_t slot : *ends) {
      if (Neighbour* neighbour = place(slot)) ++neighbour->degree;
    }
  }
  for (const int64_t slot : leaving) {
    if (Neighbour* neighbour = place(slot)) neighbour->degree = enough;
  }
  Vec<int64_t> slots;
  for (const Neighbour& neighbour : found) {
    if (neighbour.degree < enough) slots.push_back(neighbour.slot);
  }
  return slots;
}

}  // namespace dynhac
