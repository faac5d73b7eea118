// Where a new vertex would join the hierarchy, without an update.
//
// Average linkage with one more vertex p makes the same merges as without it until p itself is
// merged. A node A of the dendrogram is a cluster from the similarity of its own merge down to that
// of its parent's, and the linkage of p to A is L(A) = (weight of the edges from p into A) / |A|.
// So p joins A if L(A) is at least the linkage of the parent's merge, or if A is a root; it does so
// at the similarity
//
//   s(A) = min(L(A), the smallest linkage in A)
//
// and of all nodes that it could join, it joins the one with the largest s(A). Only nodes above the
// other ends of its edges have L(A) > 0. With epsilon = 0 and no ties this is the first merge of p
// if it were inserted.
//
// The walk goes level by level, as a change of weights does: the weight into a vertex is the sum of
// the weights into the members of its group. It reads the merges of every group that it passes.

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "core/hierarchy/engine.h"

namespace dynhac {

namespace {

// The part of the new vertex's edges that goes into one node.
struct Share {
  Weight weight = 0;
  size_t edge = Placement::kNoEdge;  // the first of these edges

  void add(const Share& other) {
    weight += other.weight;
    edge = std::min(edge, other.edge);
  }
};

struct Reached {
  Vertex v;  // of the present level
  Share share;
};

// A node of the group in progress, the image first and parents before their children.
struct Step {
  NodeRef n;
  uint32_t parent;  // in the list of steps
  Share share;
};

class Walk {
 public:
  Walk(const NodeStore& nodes, const Vec<std::unique_ptr<Level>>& levels)
      : nodes_(nodes), levels_(levels) {}

  // Linkages are in units of the resolution.
  Placement run(Vec<Reached> reached) {
    reached_ = std::move(reached);
    for (size_t i = 0; !reached_.empty(); ++i) rise(i);
    return best_;
  }

 private:
  // From a level to the next one. Roots are left behind.
  void rise(size_t i) {
    const Level& level = *levels_[i];
    above_.clear();
    std::ranges::sort(reached_, {}, [&](const Reached& r) { return level.role[r.v].image; });
    for (size_t begin = 0, end; begin < reached_.size(); begin = end) {
      const Vertex image = level.role[reached_[begin].v].image;
      end = begin + 1;
      if (image == kNone) {
        offer(nodes_[level.cold[reached_[begin].v].node], reached_[begin].share);
        continue;
      }
      while (end < reached_.size() && level.role[reached_[end].v].image == image) ++end;
      const auto members = std::span(reached_).subspan(begin, end - begin);
      above_.push_back({image, cross(i, levels_[i + 1]->cold[image].node, members)});
    }
    std::swap(reached_, above_);
  }

  // From members of a group of level i to the node of its image; returns the share of that.
  Share cross(size_t i, NodeRef top, std::span<Reached> members) {
    const Level& level = *levels_[i];
    auto node_of = [&](const Reached& r) { return level.cold[r.v].node; };
    if (node_of(members[0]) == top) return members[0].share;  // alone in its group
    std::ranges::sort(members, {}, node_of);
    steps_.assign(1, {top, kNone, {}});
    size_t missing = members.size();
    for (uint32_t at = 0; missing > 0; ++at) {
      const Node& node = nodes_[steps_[at].n];
      if (!node.is_leaf() && node.level == i) {  // a merge of this group
        steps_.push_back({node.left, at, {}});
        steps_.push_back({node.right, at, {}});
        continue;
      }
      const auto member = std::ranges::lower_bound(members, steps_[at].n, {}, node_of);
      if (member == members.end() || node_of(*member) != steps_[at].n) continue;
      steps_[at].share = member->share;
      --missing;
    }
    for (size_t at = steps_.size(); --at > 0;) {
      const Step& step = steps_[at];
      if (step.share.weight == 0) continue;
      Step& parent = steps_[step.parent];
      const Node& node = nodes_[step.n];
      if (linkage(step.share.weight, 1, node.size) >= nodes_[parent.n].similarity) {
        offer(node, step.share);
      }
      parent.share.add(step.share);
    }
    return steps_[0].share;
  }

  // A node that the vertex could join. Of equal similarities, the one with the first edge counts.
  void offer(const Node& node, const Share& share) {
    const double s = std::min(linkage(share.weight, 1, node.size), node.least_merge);
    if (s < best_.similarity || (s == best_.similarity && share.edge > best_.edge)) return;
    best_ = {share.edge, s, node.size, node.is_leaf() ? -1 : node.id};
  }

  const NodeStore& nodes_;
  const Vec<std::unique_ptr<Level>>& levels_;
  Vec<Reached> reached_, above_;
  Vec<Step> steps_;
  Placement best_;
};

}  // namespace

Placement Engine::place(std::span<const int64_t> keys, std::span<const double> weights) const {
  const auto lock = lock_.read();
  Vec<Reached> reached;
  reached.reserve(keys.size());
  Weight total = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Weight w = fixed_point(weights[i], resolution_, i);
    if (w > kLargestTotal - total) throw BatchError("total_overflow", i);
    total += w;
    reached.push_back({vertex_of(keys[i], i), {w, i}});
  }
  Placement placement = Walk(nodes_, levels_).run(std::move(reached));
  placement.similarity *= resolution_;
  return placement;
}

}  // namespace dynhac
