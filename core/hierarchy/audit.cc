// Recomputes everything that the engine keeps between updates from the edges of level 0, level by
// level, and reports differences: the edges of the levels, sizes, least merges, groups,
// certificates, heaviest edges. It verifies the caches; check.h judges whether the merges are good.

#include <algorithm>
#include <map>

#include "core/hierarchy/engine.h"

namespace dynhac {

namespace {

constexpr size_t kMostLines = 20;
constexpr double kTolerance = 1 + 0x1p-40;

class Auditor {
 public:
  Auditor(const Rule& rule, uint32_t last_level, const NodeStore& nodes,
          std::vector<std::string>& lines, Poll* poll)
      : rule_(rule), last_level_(last_level), nodes_(nodes), lines_(lines), pace_(poll) {}

  void lists(uint32_t index, const Level& level) {
    for (Vertex v = 0; v < level.slots(); ++v) {
      const Hot& h = level.hot[v];
      const Cold& c = level.cold[v];
      expect(h.slot == kNone && c.flags == 0 && c.state == State::kKept, index, v,
             "scratch in use");
      if (h.size == 0) continue;
      const std::span<const Entry> entries = level.edges(v);
      pace_.step(8 + 8 * entries.size(), entries.size());
      uint32_t live = 0, dead = 0;
      for (uint32_t p = 0; p < entries.size(); ++p) {
        const auto& [y, mirror, weight] = entries[p];
        if (y == v) {
          ++dead;
          expect(weight == 0, index, v, "dead entry with a weight");
          continue;
        }
        ++live;
        if (!expect(y < level.slots() && level.lives(y), index, v, "edge to no vertex")) continue;
        const std::span<const Entry> theirs = level.edges(y);
        expect(mirror < theirs.size() && theirs[mirror].neighbour == v &&
                   theirs[mirror].mirror == p && theirs[mirror].weight == weight,
               index, v, "mirror");
        expect(weight > 0, index, v, "weight not positive");
      }
      expect(live == c.live && live + dead == c.used, index, v, "degree");
      uint32_t free = 0;
      for (uint32_t p = c.free_slots; p != kNone && free <= dead; p = entries[p].mirror) ++free;
      expect(free == dead, index, v, "free entries");
      const Node& node = nodes_[c.node];
      expect(node.size == h.size && node.least_merge == c.least_merge && c.old_node == c.node,
             index, v, "node");
    }
  }

  // Groups, certificates and heaviest edges of a level, and the sums on the next one.
  void groups(uint32_t index, const Level& low, const Level* high) {
    std::vector<uint8_t> seen(high == nullptr ? 0 : high->slots(), 0);
    for (Vertex v = 0; v < low.slots(); ++v) {
      if (!low.lives(v)) continue;
      const Role& r = low.role[v];
      pace_.step(8 + 8 * low.edges(v).size(), low.edges(v).size());
      if (r.image == kNone) {
        expect(!rule_.is_heavy(low.heaviest(v).wmax), index, v, "finished with a heavy edge");
        expect(r.hi == rule_.finished_limit(), index, v, "certificate of a finished vertex");
        continue;
      }
      if (!expect(high != nullptr && r.image < high->slots() && high->lives(r.image), index, v,
                  "image does not exist")) {
        continue;
      }
      if (r.hi == kInfinity) {
        const Heaviest found = low.heaviest(v);
        expect(rule_.is_heavy(found.wmax), index, v, "no heavy edge, but not finished");
        expect(found.wmax == r.wmax && found.best == r.best, index, v, "heaviest edge");
        expect(high->cold[r.image].count == 1, index, v, "marked as alone in a larger group");
      }
      if (!seen[r.image]) {
        seen[r.image] = 1;
        group(index, low, *high, r.image);
      }
    }
    if (high == nullptr) return;
    for (Vertex g = 0; g < high->slots(); ++g) {
      expect(seen[g] == high->lives(g), index + 1, g, "image without members");
    }
    sums(index, low, *high);
  }

 private:
  bool expect(bool holds, uint32_t level, Vertex v, const char* what) {
    if (!holds && lines_.size() < kMostLines) {
      lines_.push_back("level " + std::to_string(level) + ", vertex " + std::to_string(v) + ": " +
                       what);
    }
    return holds;
  }

  struct Cluster {
    double hi_sum = 0, outside_sum = 0;  // weighted by size
    bool certified = true;
    uint32_t size = 0;
  };

  void group(uint32_t index, const Level& low, const Level& high, Vertex g) {
    const Cold& image = high.cold[g];
    std::map<NodeRef, Cluster> clusters;
    uint32_t count = 0, size = 0;
    for (Vertex v = image.first; v != kNone && count <= image.count; v = low.cold[v].next) {
      ++count;
      const Role& r = low.role[v];
      const uint32_t mine = low.hot[v].size;
      if (!expect(r.image == g && mine > 0, index, v, "member with another image")) return;
      size += mine;
      if (image.count == 1) {
        expect(low.cold[v].node == image.node && r.hi == kInfinity, index, v, "vertex alone");
        continue;
      }
      double outside = 0;
      for (const Entry& e : low.edges(v)) {
        if (low.role[e.neighbour].image == g) continue;
        outside = std::max(outside, linkage(e.weight, mine, low.hot[e.neighbour].size));
      }
      expect(r.hi == 0 || outside <= r.hi * kTolerance, index, v, "linkage beyond its certificate");
      expect(r.hi == 0 || index != last_level_, index, v, "certificate on the last level");
      clusters[low.cold[v].node] = {r.hi * mine, outside * mine, r.hi > 0, mine};
    }
    expect(count == image.count && size == high.hot[g].size, index + 1, g, "members");
    if (image.count == 1) return;
    // For either side of every merge, the mean of the certificates must not exceed the limit.
    Vec<NodeRef> order{image.node};
    for (size_t i = 0; i < order.size(); ++i) {
      for (const NodeRef child : {nodes_[order[i]].left, nodes_[order[i]].right}) {
        if (nodes_[child].level == index) order.push_back(child);
      }
    }
    expect(order.size() + 1 == image.count, index + 1, g, "merges of the group");
    for (size_t i = order.size(); i-- > 0;) {
      const Node& node = nodes_[order[i]];
      Cluster sum;
      const double least = std::min(nodes_[node.left].least_merge, nodes_[node.right].least_merge);
      for (const NodeRef child : {node.left, node.right}) {
        const auto it = clusters.find(child);
        if (!expect(it != clusters.end(), index + 1, g, "merge of non-members")) return;
        const Cluster& c = it->second;
        const double limit = std::max(rule_.limit(least, node.similarity), c.outside_sum / c.size);
        const double rounding = 1 + image.count * 0x1p-50;  // of so many terms
        expect(!c.certified || c.hi_sum <= limit * c.size * kTolerance * rounding, index + 1, g,
               "certificates beyond the limit");
        sum.hi_sum += c.hi_sum;
        sum.outside_sum += c.outside_sum;
        sum.certified &= c.certified;
        sum.size += c.size;
      }
      expect(node.size == sum.size && node.least_merge == std::min(least, node.similarity),
             index + 1, g, "node of a merge");
      clusters[order[i]] = sum;
    }
  }

  void sums(uint32_t index, const Level& low, const Level& high) {
    std::vector<Weight> sum(high.slots(), 0);
    for (Vertex g = 0; g < high.slots(); ++g) {
      if (!high.lives(g)) continue;
      std::vector<Vertex> touched;
      for (Vertex v = high.cold[g].first; v != kNone; v = low.cold[v].next) {
        pace_.step(8 + 8 * low.edges(v).size(), low.edges(v).size());
        for (const Entry& e : low.edges(v)) {
          const Vertex other = low.role[e.neighbour].image;
          if (other == kNone || other == g) continue;
          if (sum[other] == 0) touched.push_back(other);
          sum[other] += e.weight;
        }
      }
      uint32_t live = 0;
      for (const Entry& e : high.edges(g)) {
        if (e.neighbour == g) continue;
        ++live;
        expect(sum[e.neighbour] == e.weight, index + 1, g, "sum of weights");
      }
      expect(live == touched.size(), index + 1, g, "number of neighbours");
      for (const Vertex other : touched) sum[other] = 0;
    }
  }

  const Rule& rule_;
  const uint32_t last_level_;
  const NodeStore& nodes_;
  std::vector<std::string>& lines_;
  Pace pace_;
};

}  // namespace

uint64_t Engine::entries() const {
  uint64_t entries = 0;
  for (const auto& level : levels_) {
    for (const Cold& c : level->cold) entries += c.used;
  }
  return entries;
}

std::vector<std::string> Engine::audit_groups(Poll* poll) const {
  std::vector<std::string> lines;
  Auditor auditor(rule_, last_level_.index(), nodes_, lines, poll);
  for (uint32_t i = 0; i < levels_.size(); ++i) {
    auditor.groups(i, *levels_[i], i + 1 < levels_.size() ? levels_[i + 1].get() : nullptr);
  }
  return lines;
}

std::vector<std::string> Engine::audit(Poll* poll) const {
  begin_phase(poll, phases::kAuditing, 3 * entries());  // lists, groups and sums
  std::vector<std::string> lines;
  Auditor auditor(rule_, last_level_.index(), nodes_, lines, poll);
  for (uint32_t i = 0; i < levels_.size(); ++i) auditor.lists(i, *levels_[i]);
  if (!lines.empty()) return lines;  // the checks below walk these lists
  lines = audit_groups(poll);
  Weight total = 0;
  for (const Weight w : edges_locked().w) total += w;
  if (total != total_) lines.push_back("total weight");
  size_t leaves = 0;
  for (const Node& node : nodes_.nodes) leaves += node.size > 0 && node.is_leaf();
  if (leaves != ids_.size() || leaves != levels_[0]->alive()) lines.push_back("number of leaves");
  return lines;
}

}  // namespace dynhac
