// Queries about single vertices, at a cost that depends on their neighbourhood only.

#include <algorithm>

#include "core/hierarchy/engine.h"

namespace dynhac {

Vertex Engine::vertex_of(int64_t key, size_t index) const {
  const Vertex* v = ids_.find(key);
  if (v == nullptr) throw BatchError("unknown", index);
  return *v;
}

Vec<int64_t> Engine::degrees(std::span<const int64_t> keys) const {
  const auto lock = lock_.read();
  Vec<int64_t> degrees;
  degrees.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    degrees.push_back(levels_[0]->cold[vertex_of(keys[i], i)].live);
  }
  return degrees;
}

EdgeList Engine::edges_of(std::span<const int64_t> keys) const {
  const auto lock = lock_.read();
  EdgeList list;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Vertex v = vertex_of(keys[i], i);
    for (const Entry& e : levels_[0]->edges(v)) {
      if (e.neighbour == v) continue;
      list.u.push_back(keys[i]);
      list.v.push_back(keys_[e.neighbour]);
      list.w.push_back(e.weight);
    }
  }
  return list;
}

Engine::Degrees Engine::low_degrees_without(std::span<const int64_t> keys, int64_t enough) const {
  const auto lock = lock_.read();
  const Level& level = *levels_[0];
  Vec<Vertex> removed;
  removed.reserve(keys.size());
  size_t ends = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    removed.push_back(vertex_of(keys[i], i));
    ends += level.cold[removed[i]].live;
  }
  FlatMap<uint32_t> lost;  // edges, by neighbour
  lost.reserve(std::min<size_t>(ends, level.alive()));
  for (const Vertex v : removed) {
    for (const Entry& e : level.edges(v)) ++lost[e.neighbour];
  }
  for (const Vertex v : removed) lost.erase(v);
  Degrees found;
  lost.for_each([&](Vertex v, uint32_t edges) {
    const int64_t left = int64_t{level.cold[v].live} - edges;
    if (left >= enough) return;
    found.keys.push_back(keys_[v]);
    found.degrees.push_back(left);
  });
  return found;
}

// Level by level: from the vertex's node through the merges of its group to the node of the image.
Vec<NodeRef> Engine::merges_above(Vertex v) const {
  struct Step {
    NodeRef n;
    uint32_t parent;  // in steps
  };
  Vec<NodeRef> above;
  Vec<Step> steps;
  for (uint32_t i = 0; i + 1 < levels_.size(); ++i) {
    const Vertex image = levels_[i]->role[v].image;
    if (image == kNone) break;
    const NodeRef from = levels_[i]->cold[v].node, top = levels_[i + 1]->cold[image].node;
    steps.assign(1, {top, kNone});
    uint32_t at = 0;
    while (steps[at].n != from) {
      const Node& node = nodes_[steps[at].n];
      if (!node.is_leaf() && node.level == i) {  // a merge of this group
        steps.push_back({node.left, at});
        steps.push_back({node.right, at});
      }
      ++at;
    }
    while ((at = steps[at].parent) != kNone) above.push_back(steps[at].n);
    v = image;
  }
  return above;
}

Meeting Engine::meeting(int64_t a, int64_t b) const {
  const auto lock = lock_.read();
  const Vec<NodeRef> from_a = merges_above(vertex_of(a, 0)), from_b = merges_above(vertex_of(b, 1));
  // The merges that the two have in common, from the roots down.
  size_t common = 0;
  while (common < std::min(from_a.size(), from_b.size()) &&
         from_a[from_a.size() - 1 - common] == from_b[from_b.size() - 1 - common]) {
    ++common;
  }
  Meeting meeting;
  meeting.meet = common > 0;
  auto write = [&](const Vec<NodeRef>& merges, Path& path) {
    const size_t count = merges.size() - common + meeting.meet;
    for (size_t i = 0; i < count; ++i) {
      const Node& node = nodes_[merges[i]];
      path.node_ids.push_back(node.id);
      path.similarity.push_back(node.similarity * resolution_);
      path.size.push_back(node.size);
    }
    if (meeting.meet) meeting.least = nodes_[merges[count - 1]].least_merge * resolution_;
  };
  write(from_a, meeting.a);
  write(from_b, meeting.b);
  return meeting;
}

}  // namespace dynhac
