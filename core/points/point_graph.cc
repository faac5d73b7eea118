#include "core/points/point_graph.h"

#include <algorithm>

namespace dynhac {

Change update_points(Engine& engine, PointTable& table, std::span<const int64_t> keys,
                     std::span<const int64_t> leaving, WeightedEdges& edges, Poll* poll) {
  table.name(keys);
  table.expect_to_leave(leaving);
  const Vec<int64_t> remove = table.keys_of(leaving);
  table.to_keys(edges.u);  // in place: there may be very many
  table.to_keys(edges.v);
  Change change = engine.update({remove, keys, {}, {}, edges.u, edges.v, edges.weights}, poll);
  table.commit(leaving);
  return change;
}

Vec<int64_t> short_of_edges(const Engine& engine, const PointTable& table,
                            std::span<const int64_t> leaving, const WeightedEdges& edges,
                            int64_t enough) {
  const Vec<int64_t> keys = table.keys_of(leaving);
  const int64_t most = enough - 1 + static_cast<int64_t>(leaving.size());
  const Engine::Degrees near = engine.low_degrees_around(keys, most);
  if (near.keys.empty()) return {};
  const Vec<int64_t> near_slots = table.find(near.keys);

  struct Neighbour {
    int64_t slot, degree;
    bool operator<(const Neighbour& other) const { return slot < other.slot; }
  };
  Vec<Neighbour> found;
  found.reserve(near_slots.size());
  for (size_t i = 0; i < near_slots.size(); ++i) {
    found.push_back({near_slots[i], near.degrees[i]});
  }
  std::sort(found.begin(), found.end());
  // Once each: a point is listed as often as it loses an edge.
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
