#include "core/check/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/check/forest.h"

namespace dynhac::replay {
namespace {

// Relative errors that are attributed to rounding.
constexpr double kRounding = 0x1p-40;
constexpr double kSimilarityRounding = 1e-12;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double linkage(int64_t weight, uint32_t size_a, uint32_t size_b) {
  return static_cast<double>(weight) / (static_cast<double>(size_a) * static_cast<double>(size_b));
}

}  // namespace

Replay::Replay(const Graph& graph, const Merges& merges, Vec<uint32_t> parent, const Limits& limits)
    : leaves_(static_cast<size_t>(graph.n)),
      merges_(merges),
      parent_(std::move(parent)),
      limits_(limits),
      nodes_(parent_.size()),
      min_merge_(parent_.size(), kInfinity),
      merge_lists_(parent_.size() - leaves_),
      load_(parent_.size()),
      heavy_(parent_.size() - leaves_) {
  for (uint32_t x = 0; x < nodes_.size(); ++x) nodes_[x].up = x;
  build_lists(graph);
}

CheckResult Replay::run() {
  const size_t count = merge_lists_.size();
  Vec<LevelMerge> order;  // within a level, children still before parents
  order.reserve(count);
  for (size_t j = 0; j < count; ++j) {
    order.emplace_back(merges_.level[j], static_cast<uint32_t>(leaves_ + j));
  }
  std::sort(order.begin(), order.end());
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && order[end].first == order[begin].first) ++end;
    replay_level(std::span<const LevelMerge>(order).subspan(begin, end - begin));
  }
  count_heavy_edges();
  result_.merges = static_cast<int64_t>(count);
  return result_;
}

uint32_t Replay::child(uint32_t node, size_t which) const {
  return static_cast<uint32_t>(merges_.children[2 * (node - leaves_) + which]);
}

// Whether a node exists at the start of the current level, rather than being made there.
bool Replay::is_vertex(uint32_t node) const {
  return is_leaf(node) || merges_.level[node - leaves_] < level_;
}

// Whether a merge of the current level is the last one of its group.
bool Replay::is_group(uint32_t node) const {
  return parent_[node] == kNoParent || merges_.level[parent_[node] - leaves_] != level_;
}

std::span<Replay::Entry> Replay::list(uint32_t node) {
  if (is_leaf(node)) return std::span(leaf_entries_).subspan(start_[node], length_[node]);
  return merge_lists_[node - leaves_];
}

void Replay::shrink_list(uint32_t node, size_t length) {
  if (is_leaf(node)) {
    length_[node] = static_cast<uint32_t>(length);
  } else if (length > 0) {
    merge_lists_[node - leaves_].resize(length);
  } else {
    Vec<Entry>().swap(merge_lists_[node - leaves_]);
  }
}

template <class Visit>
void Replay::for_members(uint32_t node, Visit&& visit) {
  const uint32_t first = nodes_[node].member;
  uint32_t x = first;
  do {
    visit(nodes_[x]);
    x = nodes_[x].next;
  } while (x != first);
}

uint32_t Replay::find(uint32_t vertex) {
  while (nodes_[vertex].up != vertex) {
    nodes_[vertex].up = nodes_[nodes_[vertex].up].up;
    vertex = nodes_[vertex].up;
  }
  return vertex;
}

void Replay::build_lists(const Graph& graph) {
  start_.assign(leaves_ + 1, 0);
  length_.assign(leaves_, 0);
  for (const auto& ends : {graph.u, graph.v}) {
    for (const int64_t x : ends) ++start_[static_cast<size_t>(x) + 1];
  }
  for (size_t x = 0; x < leaves_; ++x) start_[x + 1] += start_[x];
  leaf_entries_.resize(start_[leaves_]);
  for (size_t i = 0; i < graph.u.size(); ++i) {
    const uint32_t a = static_cast<uint32_t>(graph.u[i]);
    const uint32_t b = static_cast<uint32_t>(graph.v[i]);
    leaf_entries_[start_[a] + length_[a]++] = {b, graph.w[i]};
    leaf_entries_[start_[b] + length_[b]++] = {a, graph.w[i]};
  }
  for (uint32_t x = 0; x < leaves_; ++x) {
    const size_t given = length_[x];
    normalise(x);
    if (length_[x] != given) {
      reject("leaf " + std::to_string(x) +
             " has an edge that is given twice; pairs must be distinct");
    }
  }
}

// Brings the list of a vertex to the current level: every neighbour once. The vertex itself is not
// among them, as members are left out when the list of a cluster is made.
void Replay::normalise(uint32_t x) {
  ++stamp_;
  const std::span<Entry> entries = list(x);
  size_t kept = 0;
  for (const Entry entry : entries) {
    const uint32_t y = find(entry.vertex);
    Node& node = nodes_[y];
    if (node.seen == stamp_) {
      entries[static_cast<size_t>(node.weight)].weight += entry.weight;
    } else {
      node.seen = stamp_;
      node.weight = static_cast<int64_t>(kept);  // here: its place in the list
      entries[kept++] = {y, entry.weight};
    }
  }
  shrink_list(x, kept);
}

void Replay::replay_level(std::span<const LevelMerge> level) {
  level_ = level.front().first;
  for (const auto& [unused, merge] : level) {
    const uint32_t a = child(merge, 0), b = child(merge, 1);
    for (const uint32_t x : {a, b}) {
      if (!is_vertex(x)) continue;
      normalise(x);
      load_[x] = list(x).size() + 1;
      nodes_[x].next = nodes_[x].member = x;
    }
    load_[merge] = load_[a] + load_[b];
    heavy_[merge - leaves_] = load_[a] >= load_[b] ? a : b;
  }
  for (const auto& [unused, merge] : level) {
    if (is_group(merge) || heavy_[parent_[merge] - leaves_] != merge) replay_path(merge);
  }
  // The level changes only now, because all its merges are judged against its start.
  for (const auto& [unused, merge] : level) {
    if (is_group(merge)) for_members(merge, [top = merge](Node& node) { node.up = top; });
  }
}

void Replay::replay_path(uint32_t top) {
  path_.clear();
  touched_.clear();
  ++stamp_;
  uint32_t a = top;
  for (; !is_vertex(a); a = heavy_[a - leaves_]) path_.push_back(a);
  nodes_[a].inside = stamp_;
  heap_.clear();
  absorb(a, /*feed_heap=*/false);
  refill_heap();
  for (size_t step = path_.size(); step-- > 0;) {
    const uint32_t merge = path_[step];
    const uint32_t b = child(merge, 0) == a ? child(merge, 1) : child(merge, 0);
    for_members(b, [this](Node& node) { node.inside = stamp_; });
    judge(merge, a, b);
    absorb(b, /*feed_heap=*/step > 0);
    nodes_[merge].size = nodes_[a].size + nodes_[b].size;
    nodes_[merge].member = nodes_[a].member;
    std::swap(nodes_[nodes_[a].member].next, nodes_[nodes_[b].member].next);  // two rings into one
    a = merge;
  }
  Vec<Entry>& entries = merge_lists_[top - leaves_];
  entries.reserve(static_cast<size_t>(std::count_if(touched_.begin(), touched_.end(),
                                                    [this](uint32_t y) { return !is_inside(y); })));
  for (const uint32_t y : touched_) {
    if (!is_inside(y)) entries.push_back({y, nodes_[y].weight});
  }
}

// The members of b are marked as inside already: what is in its list and inside is in a.
void Replay::judge(uint32_t merge, uint32_t a, uint32_t b) {
  int64_t between = 0;
  double outside_b = 0;
  for (const Entry& entry : list(b)) {
    if (is_inside(entry.vertex)) {
      between += entry.weight;
    } else {
      outside_b = std::max(outside_b, linkage(entry.weight, nodes_[entry.vertex].size, 1));
    }
  }
  outside_b /= nodes_[b].size;
  const double outside_a = heaviest_outside() / nodes_[a].size;
  const double own = linkage(between, nodes_[a].size, nodes_[b].size);
  const double most = std::max({outside_a, outside_b, own});
  const double least = std::min({min_merge_[a], min_merge_[b], own});
  min_merge_[merge] = least;

  const double slack = 1 + limits_.epsilon;
  const double real = own * limits_.resolution;
  const bool good = own > 0 && most <= slack * least * (1 + kRounding) &&
                    real >= limits_.threshold / slack * (1 - kRounding);
  if (!good) ++result_.bad_merges;
  result_.worst_goodness = std::max(result_.worst_goodness, least > 0 ? most / least : kInfinity);
  const double error = std::abs(merges_.similarity[merge - leaves_] - real);
  if (!(error <= kSimilarityRounding * real)) ++result_.wrong_similarities;  // also true for nan
}

// Adds the list of b to w(A, .), and frees it. The last call for a path need not update the heap.
void Replay::absorb(uint32_t b, bool feed_heap) {
  for (const Entry& entry : list(b)) {
    Node& y = nodes_[entry.vertex];
    if (y.inside == stamp_) continue;
    if (y.seen != stamp_) {
      y.seen = stamp_;
      y.weight = 0;
      touched_.push_back(entry.vertex);
    }
    y.weight += entry.weight;
    if (feed_heap) {
      heap_.push_back({linkage(y.weight, y.size, 1), entry.vertex});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
  shrink_list(b, 0);
  // Outdated entries may be many: memory must be bounded by the neighbours, not by the pushes.
  if (heap_.size() > 2 * touched_.size() + 64) refill_heap();
}

void Replay::refill_heap() {
  heap_.clear();
  for (const uint32_t y : touched_) {
    if (!is_inside(y)) heap_.push_back({linkage(nodes_[y].weight, nodes_[y].size, 1), y});
  }
  std::make_heap(heap_.begin(), heap_.end());
}

// The largest w(A, y) / S(y) of a y that is not inside; 0 if there is none.
double Replay::heaviest_outside() {
  while (!heap_.empty() && is_inside(heap_.front().vertex)) {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
  return heap_.empty() ? 0 : heap_.front().value;
}

void Replay::count_heavy_edges() {
  const double lightest = limits_.threshold / (1 + limits_.epsilon) * (1 + kRounding);
  for (uint32_t x = 0; x < nodes_.size(); ++x) {
    if (parent_[x] != kNoParent) continue;
    normalise(x);
    for (const Entry& entry : list(x)) {
      if (entry.vertex < x) continue;  // every edge is in two lists
      const double own = linkage(entry.weight, nodes_[x].size, nodes_[entry.vertex].size);
      if (own * limits_.resolution >= lightest) ++result_.heavy_edges_left;
    }
  }
}

}  // namespace dynhac::replay
