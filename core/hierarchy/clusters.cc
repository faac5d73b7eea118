#include "core/hierarchy/clusters.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/hierarchy/engine.h"

namespace dynhac {
namespace {

// Holds a sum of products of two weights: the weights of all edges of a point add up to less than
// 2^62.
using Exact = unsigned __int128;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Checked labels: kNone for none. Throws std::invalid_argument.
Vec<uint32_t> checked_labels(std::span<const int64_t> labels, size_t leaves, int64_t count) {
  if (labels.size() != leaves) {
    throw std::invalid_argument(std::to_string(labels.size()) + " labels for " +
                                std::to_string(leaves) + " leaves");
  }
  if (count < 0 || count >= int64_t{kNone}) throw std::invalid_argument("number of clusters");
  Vec<uint32_t> checked(leaves);
  for (size_t i = 0; i < leaves; ++i) {
    if (labels[i] < -1 || labels[i] >= count) {
      throw std::invalid_argument("label " + std::to_string(labels[i]));
    }
    checked[i] = labels[i] < 0 ? kNone : static_cast<uint32_t>(labels[i]);
  }
  return checked;
}

}  // namespace

// Fills in one cluster after the other. Buffers that depend on the number of points or clusters are
// made once.
class Engine::Summarizer {
 public:
  Summarizer(const Engine& engine, std::span<const int64_t> labels, int64_t count,
             size_t most_nearest)
      : engine_(engine), level_(*engine.levels_[0]), most_nearest_(most_nearest) {
    const Vec<NodeRef> leaves = engine.ordered_leaves();
    const Vec<uint32_t> label = checked_labels(labels, leaves.size(), count);
    begin_.assign(static_cast<size_t>(count) + 1, 0);
    for (const uint32_t c : label) {
      if (c != kNone) ++begin_[c + 1];
    }
    for (size_t c = 0; c < static_cast<size_t>(count); ++c) begin_[c + 1] += begin_[c];
    leaves_.resize(begin_.back());
    vertices_.resize(leaves.size());
    cluster_of_.assign(level_.slots(), kNone);
    Vec<size_t> end(begin_.begin(), begin_.end() - 1);
    for (uint32_t i = 0; i < leaves.size(); ++i) {
      const Vertex v = vertices_[i] = engine.nodes_[leaves[i]].left;
      cluster_of_[v] = label[i];
      if (label[i] != kNone) leaves_[end[label[i]]++] = i;
    }
    inside_.assign(level_.slots(), -1);
    between_.assign(static_cast<size_t>(count), 0);
    parent_.assign(engine.nodes_.slots(), kNone);
    for (NodeRef n = 0; n < engine.nodes_.slots(); ++n) {
      const Node& node = engine.nodes_[n];
      if (node.size > 0 && !node.is_leaf()) parent_[node.left] = parent_[node.right] = n;
    }
  }

  void add(uint32_t cluster, ClusterSummary& out) {
    const std::span<const uint32_t> leaves(leaves_.data() + begin_[cluster], size(cluster));
    members_.clear();
    touched_.clear();
    Weight total = 0;  // twice that of the edges inside
    uint64_t ends = 0;
    for (const uint32_t leaf : leaves) {
      const Vertex v = vertices_[leaf];
      Member m{leaf, inside(v), 0, 0};
      for (const Entry& e : level_.edges(v)) {
        if (e.neighbour == v) continue;  // a dead entry
        m.all += e.weight;
        m.around += static_cast<Exact>(e.weight) * static_cast<Exact>(inside(e.neighbour));
        const uint32_t other = cluster_of_[e.neighbour];
        if (other == cluster) {
          ++ends;
        } else if (other != kNone) {
          if (between_[other] == 0) touched_.push_back(other);
          between_[other] += e.weight;
        }
      }
      total += m.inside;
      members_.push_back(m);
    }
    std::sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
      return a.inside != b.inside ? a.inside > b.inside : a.leaf < b.leaf;
    });
    write_members(out);
    const uint32_t s = size(cluster);
    const double resolution = engine_.resolution_;
    out.cohesion.push_back(s < 2 ? kNan : linkage(total, s, s - 1) * resolution);
    out.density.push_back(s < 2 ? kNan
                                : static_cast<double>(ends) / (static_cast<double>(s) * (s - 1)));
    const NodeRef node = node_of(leaves, cluster);
    out.node_ids.push_back(node == kNone ? -1 : engine_.nodes_[node].id);
    out.similarity.push_back(node == kNone ? kNan : engine_.nodes_[node].least_merge * resolution);
    write_nearest(s, out);
  }

 private:
  struct Member {
    uint32_t leaf;
    Weight inside, all;  // of its edges
    Exact around;        // sum over its edges: weight * inside weight of the neighbour
  };

  Weight inside(Vertex v) {
    if (inside_[v] < 0) {
      inside_[v] = 0;
      const uint32_t cluster = cluster_of_[v];
      if (cluster != kNone) {
        for (const Entry& e : level_.edges(v)) {  // a dead entry has weight 0
          if (cluster_of_[e.neighbour] == cluster) inside_[v] += e.weight;
        }
      }
    }
    return inside_[v];
  }

  uint32_t size(uint32_t cluster) const {
    return static_cast<uint32_t>(begin_[cluster + 1] - begin_[cluster]);
  }

  void write_members(ClusterSummary& out) const {
    out.start.push_back(static_cast<int64_t>(out.members.size()));
    const uint32_t s = static_cast<uint32_t>(members_.size());
    for (const Member& m : members_) {
      const double inside = static_cast<double>(m.inside);
      out.members.push_back(m.leaf);
      out.typicality.push_back(s < 2 ? kNan : linkage(m.inside, s - 1, 1) * engine_.resolution_);
      // A point with inside weight has a neighbour with inside weight.
      // The weighted mean of its neighbours is around / all. A point with inside weight has a
      // neighbour with inside weight.
      out.outlier.push_back(m.inside == 0
                                ? 1.0
                                : std::max(0.0, 1.0 - inside * static_cast<double>(m.all) /
                                                          static_cast<double>(m.around)));
      out.inside_share.push_back(m.all == 0 ? kNan : inside / static_cast<double>(m.all));
    }
  }

  // The merge that has exactly these leaves. A node has more leaves than its children, so the way
  // up is no longer than the number of leaves.
  NodeRef node_of(std::span<const uint32_t> leaves, uint32_t cluster) {
    if (leaves.size() < 2) return kNone;
    const NodeStore& nodes = engine_.nodes_;
    NodeRef n = level_.cold[vertices_[leaves[0]]].node;
    while (n != kNone && nodes[n].size < leaves.size()) n = parent_[n];
    if (n == kNone || nodes[n].size != leaves.size()) return kNone;
    bool same = true;
    nodes.for_each_leaf(
        n, stack_, [&](const Node& leaf) { same = same && cluster_of_[leaf.left] == cluster; });
    return same ? n : kNone;
  }

  void write_nearest(uint32_t s, ClusterSummary& out) {
    out.nearest_start.push_back(static_cast<int64_t>(out.nearest.size()));
    nearest_.clear();
    for (const uint32_t other : touched_) {
      nearest_.push_back({linkage(between_[other], s, size(other)), other});
      between_[other] = 0;
    }
    const size_t kept = std::min(most_nearest_, nearest_.size());
    std::partial_sort(nearest_.begin(), nearest_.begin() + static_cast<ptrdiff_t>(kept),
                      nearest_.end(), [](const Near& a, const Near& b) {
                        return a.linkage != b.linkage ? a.linkage > b.linkage
                                                      : a.cluster < b.cluster;
                      });
    for (size_t i = 0; i < kept; ++i) {
      out.nearest.push_back(nearest_[i].cluster);
      out.nearest_linkage.push_back(nearest_[i].linkage * engine_.resolution_);
    }
  }

  struct Near {
    double linkage;
    uint32_t cluster;
  };

  const Engine& engine_;
  const Level& level_;
  const size_t most_nearest_;
  Vec<size_t> begin_;         // by cluster: of its leaves; one more entry at the end
  Vec<uint32_t> leaves_;      // by cluster, then in order of insertion
  Vec<Vertex> vertices_;      // by leaf
  Vec<uint32_t> cluster_of_;  // by vertex; kNone for none
  Vec<Weight> inside_;        // by vertex: the inside weight; -1: not computed yet
  Vec<NodeRef> parent_;       // by node
  // Of the cluster that is being added.
  Vec<Member> members_;
  Vec<Weight> between_;  // by other cluster; 0 for those that are not in touched_
  Vec<uint32_t> touched_;
  Vec<Near> nearest_;
  Vec<NodeRef> stack_;
};

std::optional<ClusterSummary> Engine::summarize(int64_t version, std::span<const int64_t> labels,
                                                int64_t count, std::optional<int64_t> only,
                                                size_t most_nearest) const {
  const auto lock = lock_.read();
  if (version_ != version) return std::nullopt;
  Summarizer summarizer(*this, labels, count, most_nearest);
  if (only.has_value() && (*only < 0 || *only >= count)) {
    throw std::invalid_argument("cluster " + std::to_string(*only));
  }
  const int64_t first = only.value_or(0), end = only.has_value() ? first + 1 : count;
  ClusterSummary summary;
  for (int64_t c = first; c < end; ++c) summarizer.add(static_cast<uint32_t>(c), summary);
  summary.start.push_back(static_cast<int64_t>(summary.members.size()));
  summary.nearest_start.push_back(static_cast<int64_t>(summary.nearest.size()));
  return summary;
}

}  // namespace dynhac
