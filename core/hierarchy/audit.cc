// Recomputes everything that the engine keeps between updates from the edges of level 0, level by
// level, and reports differences: the edges of the levels, sizes, least merges, groups,
// certificates, heaviest edges. It verifies the caches; check.h judges whether the merges are good.

#include <algorithm>
#include <atomic>

#include "core/hierarchy/engine.h"

namespace dynhac {

namespace {

constexpr size_t kMostLines = 20;
constexpr double kTolerance = 1 + 0x1p-40;

struct Cluster {
  NodeRef node = kNone;
  double hi_sum = 0, outside_sum = 0;  // weighted by size
  bool certified = true;
  uint32_t size = 0;
};

struct Merge {
  Cluster made;
  uint32_t below[2] = {kNone, kNone};  // the merges that made its children; kNone: a member
};

// Of one hand.
struct Scratch {
  Vec<Cluster> members;  // of a group, by node
  Vec<Merge> merges;     // of that group, parents before children
  Vec<Weight> sum;       // by vertex of the next level: the weight to that group
  Vec<Vertex> touched;   // those with a weight
};

// Audits a range of the vertices of a level.
class Part {
 public:
  // `last`: it is the last level.
  Part(const Rule& rule, const NodeStore& nodes, uint32_t index, bool last, Scratch& scratch,
       std::vector<std::string>& lines)
      : rule_(rule), nodes_(nodes), index_(index), last_(last), scratch_(scratch), lines_(lines) {}

  uint64_t entries() const { return entries_; }  // that were read

  void list(const Level& level, Vertex v) {
    const Hot& h = level.hot[v];
    const Cold& c = level.cold[v];
    expect(h.slot == kNone && c.flags == 0 && c.state == State::kKept, v, "scratch in use");
    if (h.size == 0) return;
    const std::span<const Entry> entries = level.edges(v);
    entries_ += entries.size();
    uint32_t live = 0, dead = 0;
    for (uint32_t p = 0; p < entries.size(); ++p) {
      const auto& [y, mirror, weight] = entries[p];
      if (y == v) {
        ++dead;
        expect(weight == 0, v, "dead entry with a weight");
        continue;
      }
      ++live;
      if (!expect(y < level.slots() && level.lives(y), v, "edge to no vertex")) continue;
      const std::span<const Entry> theirs = level.edges(y);
      expect(mirror < theirs.size() && theirs[mirror].neighbour == v &&
                 theirs[mirror].mirror == p && theirs[mirror].weight == weight,
             v, "mirror");
      expect(weight > 0, v, "weight not positive");
    }
    expect(live == c.live && live + dead == c.used, v, "degree");
    uint32_t free = 0;
    for (uint32_t p = c.free_slots; p != kNone && free <= dead; p = entries[p].mirror) ++free;
    expect(free == dead, v, "free entries");
    const Node& node = nodes_[c.node];
    expect(node.size == h.size && node.least_merge == c.least_merge && c.old_node == c.node, v,
           "node");
  }

  // What a vertex knows of its group and its heaviest edge. `computed`: that edge is known to be
  // right.
  void role(const Level& low, const Level* high, Vertex v, bool computed) {
    if (!low.lives(v)) return;
    const Role& r = low.role[v];
    entries_ += low.edges(v).size();
    if (r.image == kNone) {
      expect(!rule_.is_heavy(low.heaviest(v).wmax), v, "finished with a heavy edge");
      expect(r.hi == rule_.finished_limit(), v, "certificate of a finished vertex");
      return;
    }
    if (!expect(high != nullptr && r.image < high->slots() && high->lives(r.image), v,
                "image does not exist")) {
      return;
    }
    if (r.hi != kInfinity) return;
    const Heaviest found = computed ? Heaviest{r.wmax, r.best} : low.heaviest(v);
    expect(rule_.is_heavy(found.wmax), v, "no heavy edge, but not finished");
    expect(found.wmax == r.wmax && found.best == r.best, v, "heaviest edge");
    expect(high->cold[r.image].count == 1, v, "marked as alone in a larger group");
  }

  // The certificates of a group, and the weights between its image and others.
  void group(const Level& low, const Level& high, Vertex g) {
    if (!high.lives(g)) return;
    const Cold& image = high.cold[g];
    auto& [members, unused, sum, touched] = scratch_;
    if (sum.size() < high.slots()) sum.resize(high.slots(), 0);
    recycle(members);
    uint32_t count = 0, size = 0;
    bool whole = expect_image(image.first != kNone, g, "image without members");
    for (Vertex v = image.first; v != kNone && count <= image.count; v = low.cold[v].next) {
      ++count;
      const Role& r = low.role[v];
      const uint32_t mine = low.hot[v].size;
      whole = expect(r.image == g && mine > 0, v, "member with another image");
      if (!whole) break;
      size += mine;
      double outside = 0;
      for (const Entry& e : low.edges(v)) {
        const Vertex other = low.role[e.neighbour].image;
        if (other == g) continue;
        if (image.count > 1) {
          outside = std::max(outside, linkage(e.weight, mine, low.hot[e.neighbour].size));
        }
        if (other == kNone) continue;
        if (sum[other] == 0) touched.push_back(other);
        sum[other] += e.weight;
      }
      entries_ += low.edges(v).size();
      if (image.count == 1) {
        expect(low.cold[v].node == image.node && r.hi == kInfinity, v, "vertex alone");
        continue;
      }
      expect(r.hi == 0 || outside <= r.hi * kTolerance, v, "linkage beyond its certificate");
      expect(r.hi == 0 || !last_, v, "certificate on the last level");
      members.push_back({low.cold[v].node, r.hi * mine, outside * mine, r.hi > 0, mine});
    }
    if (whole) {
      expect_image(count == image.count && size == high.hot[g].size, g, "members");
      weights(high, g);
      if (image.count > 1) merges(image, g);
    }
    for (const Vertex other : touched) sum[other] = 0;
    recycle(touched);
  }

 private:
  bool expect(bool holds, Vertex v, const char* what) { return expect_at(holds, index_, v, what); }
  bool expect_image(bool holds, Vertex g, const char* what) {
    return expect_at(holds, index_ + 1, g, what);
  }
  bool expect_at(bool holds, uint32_t level, Vertex v, const char* what) {
    if (!holds && lines_.size() < kMostLines) {
      lines_.push_back("level " + std::to_string(level) + ", vertex " + std::to_string(v) + ": " +
                       what);
    }
    return holds;
  }

  // The edges of an image have the weights that its members have to other groups.
  void weights(const Level& high, Vertex g) {
    uint32_t live = 0;
    for (const Entry& e : high.edges(g)) {
      if (e.neighbour == g) continue;
      ++live;
      expect_image(scratch_.sum[e.neighbour] == e.weight, g, "sum of weights");
    }
    expect_image(live == scratch_.touched.size(), g, "number of neighbours");
  }

  // For either side of every merge, the mean of the certificates must not exceed the limit.
  void merges(const Cold& image, Vertex g) {
    Vec<Cluster>& members = scratch_.members;
    std::ranges::sort(members, {}, &Cluster::node);
    Vec<Merge>& merges = scratch_.merges;
    merges.assign(1, {.made = {.node = image.node}});
    for (size_t i = 0; i < merges.size(); ++i) {
      const Node& node = nodes_[merges[i].made.node];
      for (const int side : {0, 1}) {
        const NodeRef child = side == 0 ? node.left : node.right;
        if (nodes_[child].level != index_) continue;
        merges[i].below[side] = static_cast<uint32_t>(merges.size());
        merges.push_back({.made = {.node = child}});
      }
    }
    expect_image(merges.size() + 1 == image.count, g, "merges of the group");
    for (size_t i = merges.size(); i-- > 0;) {
      Cluster& made = merges[i].made;
      const Node& node = nodes_[made.node];
      const double least = std::min(nodes_[node.left].least_merge, nodes_[node.right].least_merge);
      for (const int side : {0, 1}) {
        const NodeRef child = side == 0 ? node.left : node.right;
        const uint32_t below = merges[i].below[side];
        const auto member = std::ranges::lower_bound(members, child, {}, &Cluster::node);
        const bool known = below != kNone || (member != members.end() && member->node == child);
        if (!expect_image(known, g, "merge of non-members")) return;
        const Cluster& c = below != kNone ? merges[below].made : *member;
        const double limit = std::max(rule_.limit(least, node.similarity), c.outside_sum / c.size);
        const double rounding = 1 + image.count * 0x1p-50;  // of so many terms
        expect_image(!c.certified || c.hi_sum <= limit * c.size * kTolerance * rounding, g,
                     "certificates beyond the limit");
        made.hi_sum += c.hi_sum;
        made.outside_sum += c.outside_sum;
        made.certified &= c.certified;
        made.size += c.size;
      }
      expect_image(node.size == made.size && node.least_merge == std::min(least, node.similarity),
                   g, "node of a merge");
    }
    recycle(merges);
  }

  const Rule& rule_;
  const NodeStore& nodes_;
  const uint32_t index_;  // of the level
  const bool last_;
  Scratch& scratch_;
  std::vector<std::string>& lines_;
  uint64_t entries_ = 0;
};

class Auditor {
 public:
  Auditor(const Rule& rule, uint32_t last_level, const NodeStore& nodes, Workers& workers,
          Poll* poll)
      : rule_(rule),
        last_level_(last_level),
        nodes_(nodes),
        workers_(workers),
        poll_(poll),
        scratch_(workers.hands()) {}

  std::vector<std::string> lines;  // what is wrong, in order

  void lists(uint32_t index, const Level& level) {
    for_vertices(index, level.slots(), [&](Part& part, Vertex v) { part.list(level, v); });
  }

  // Groups, certificates and heaviest edges of a level, and the sums on the next one.
  void groups(uint32_t index, const Level& low, const Level* high, bool computed) {
    for_vertices(index, low.slots(),
                 [&](Part& part, Vertex v) { part.role(low, high, v, computed); });
    if (high == nullptr || !lines.empty()) return;  // what follows needs the images
    for_vertices(index, high->slots(), [&](Part& part, Vertex g) { part.group(low, *high, g); });
  }

 private:
  template <class Body>
  void for_vertices(uint32_t index, uint32_t count, Body body) {
    constexpr size_t kRange = size_t{1} << 12;
    std::vector<std::vector<std::string>> found(Workers::ranges(count, kRange));
    workers_.for_ranges_numbered(
        count, kRange, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
          Part part(rule_, nodes_, index, index == last_level_, scratch_[hand], found[range]);
          for (size_t v = begin; v < end; ++v) body(part, static_cast<Vertex>(v));
          const uint64_t done = done_.fetch_add(part.entries()) + part.entries();
          if (Workers::is_caller(hand) && poll_ != nullptr) poll_->reach(done);
        });
    for (const auto& each : found) {
      const size_t room = std::min(each.size(), kMostLines - lines.size());
      lines.insert(lines.end(), each.begin(), each.begin() + static_cast<ptrdiff_t>(room));
    }
  }

  const Rule& rule_;
  const uint32_t last_level_;
  const NodeStore& nodes_;
  Workers& workers_;
  Poll* const poll_;
  std::vector<Scratch> scratch_;  // by hand
  std::atomic<uint64_t> done_{0};
};

}  // namespace

uint64_t Engine::entries() const {
  uint64_t entries = 0;
  for (const auto& level : levels_) {
    for (const Cold& c : level->cold) entries += c.used;
  }
  return entries;
}

std::vector<std::string> Engine::audit_groups(Workers& workers, Poll* poll) const {
  Auditor auditor(rule_, last_level_.index(), nodes_, workers, poll);
  for (uint32_t i = 0; i < levels_.size(); ++i) {
    const Level* high = i + 1 < levels_.size() ? levels_[i + 1].get() : nullptr;
    auditor.groups(i, *levels_[i], high, /*computed=*/true);
  }
  return std::move(auditor.lines);
}

std::vector<std::string> Engine::audit(Poll* poll) const {
  Workers workers(threads());
  const Workers::Session session(workers);
  begin_phase(poll, phases::kAuditing, 3 * entries());  // lists, roles and groups
  Auditor auditor(rule_, last_level_.index(), nodes_, workers, poll);
  for (uint32_t i = 0; i < levels_.size(); ++i) auditor.lists(i, *levels_[i]);
  if (!auditor.lines.empty()) return std::move(auditor.lines);  // what follows walks these lists
  for (uint32_t i = 0; i < levels_.size(); ++i) {
    const Level* high = i + 1 < levels_.size() ? levels_[i + 1].get() : nullptr;
    auditor.groups(i, *levels_[i], high, /*computed=*/false);
  }
  std::vector<std::string> lines = std::move(auditor.lines);
  Weight total = 0;
  for (const Weight w : edges_locked().w) total += w;
  if (total != total_) lines.push_back("total weight");
  size_t leaves = 0;
  for (const Node& node : nodes_.nodes) leaves += node.size > 0 && node.is_leaf();
  if (leaves != ids_.size() || leaves != levels_[0]->alive()) lines.push_back("number of leaves");
  return lines;
}

}  // namespace dynhac
