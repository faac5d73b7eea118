#include "core/hierarchy/subgraph_run.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace dynhac {

void SubgraphRun::clear() {
  recycle(nodes_);
  own_.clear();
  recycle(queue_);
  recycle(watchers_);
  recycle(steps_);
}

void SubgraphRun::add_vertex(int64_t name, int64_t size, double least, uint32_t degree) {
  const uint32_t slot = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({name, size, least, 0, slot});
  own_.emplace_back().weights.reserve(degree);
}

uint32_t SubgraphRun::add_outside(int64_t name, int64_t size) {
  const uint32_t slot = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({name, size, kInfinity, 0, slot});
  return slot;
}

void SubgraphRun::give_ranks() {
  order_.resize(nodes_.size());
  for (uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
  const auto hash = [this](uint32_t slot) {
    return mix_bits(static_cast<uint64_t>(nodes_[slot].name));
  };
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t i, uint32_t j) { return hash(i) < hash(j); });
  for (uint32_t i = 0; i < order_.size(); ++i) nodes_[order_[i]].rank = i;
}

void SubgraphRun::fill_heap(uint32_t v) {
  Neighbours& own = own_[v];
  own.heap.clear();
  own.heap.reserve(own.weights.size());
  own.weights.for_each([&](uint32_t y, const Weight& w) { own.heap.push_back(entry(y, w)); });
  std::make_heap(own.heap.begin(), own.heap.end());
}

uint32_t SubgraphRun::image(uint32_t slot) {
  while (nodes_[slot].up != slot) {
    nodes_[slot].up = nodes_[nodes_[slot].up].up;
    slot = nodes_[slot].up;
  }
  return slot;
}

// The heaviest edge of a live cluster, up to date and at the top of its heap, or nullptr.
const SubgraphRun::Entry* SubgraphRun::heaviest(uint32_t v) {
  Neighbours& own = own_[v];
  while (!own.heap.empty()) {
    pace_.step();
    Entry& top = own.heap.front();
    const uint32_t y = image(top.slot);
    if (y == v) {
      drop_heaviest(own.heap);
      continue;
    }
    const Entry now = entry(y, *own.weights.find(y));
    if (now < top) {
      drop_heaviest(own.heap);
      own.heap.push_back(now);
      std::push_heap(own.heap.begin(), own.heap.end());
    } else if (top < now) {  // another entry of y is not below `now`
      drop_heaviest(own.heap);
    } else {
      top.slot = y;
      return &top;
    }
  }
  return nullptr;
}

void SubgraphRun::drop_heaviest(Vec<Entry>& heap) {
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
}

double SubgraphRun::largest_linkage(uint32_t v) {
  const Entry* top = heaviest(v);
  return top == nullptr ? 0 : between(v, top->slot, *own_[v].weights.find(top->slot));
}

void SubgraphRun::run() {
  give_ranks();
  for (uint32_t v = 0; v < active(); ++v) {
    fill_heap(v);
    pace_.step(own_[v].heap.size());
  }
  for (uint32_t v = 0; v < active(); ++v) queue(v, kInfinity);
  while (!queue_.empty()) {
    const Queued top = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    if (nodes_[top.slot].version == top.version) examine(top.slot);
  }
}

// A vertex without a heavy edge never gets one again: it need not be queued.
void SubgraphRun::queue(uint32_t v, double most) {
  const double l = largest_linkage(v);
  Node& node = nodes_[v];
  ++node.version;
  if (!rule_.is_heavy(l)) return;
  queue_.push_back({std::min(l, most), node.rank, v, node.version});
  std::push_heap(queue_.begin(), queue_.end());
}

// Merges v along its heaviest good edge, or lets it rest.
void SubgraphRun::examine(uint32_t v) {
  Neighbours& own = own_[v];
  aside_.clear();  // edges that are heavier than the one looked at
  double largest = 0, l = 0, next = 0;
  uint32_t partner = kNone;
  while (const Entry* top = heaviest(v)) {
    const uint32_t y = top->slot;
    if (!aside_.empty() && aside_.back().slot == y) {  // the same edge again
      drop_heaviest(own.heap);
      continue;
    }
    l = between(v, y, *own.weights.find(y));
    if (aside_.empty()) largest = l;
    if (!rule_.is_heavy(l)) break;
    if (!rule_.good(rule_.keep, largest, nodes_[v].least, l)) {
      next = rule_.limit(nodes_[v].least, l);
      break;
    }
    if (is_active(y) && good(v, largest, y, l)) {
      partner = y;
      break;
    }
    aside_.push_back(*top);
    drop_heaviest(own.heap);
  }
  for (const Entry& e : aside_) {
    own.heap.push_back(e);
    std::push_heap(own.heap.begin(), own.heap.end());
  }
  if (partner != kNone) {
    merge(v, partner, l);
  } else if (!aside_.empty()) {
    watch(v, aside_.front().slot, next);
  }
}

bool SubgraphRun::good(uint32_t v, double largest, uint32_t y, double l) {
  const double outside = std::max(largest, largest_linkage(y));
  return rule_.good(rule_.keep, outside, std::min(nodes_[v].least, nodes_[y].least), l);
}

void SubgraphRun::watch(uint32_t v, uint32_t target, double next_good) {
  if (!is_active(target)) return;  // it never merges
  watchers_.push_back({next_good, v, nodes_[v].version, nodes_[target].watch});
  nodes_[target].watch = static_cast<uint32_t>(watchers_.size() - 1);
}

void SubgraphRun::queue_watchers(uint32_t of) {
  uint32_t at = std::exchange(nodes_[of].watch, kNone);
  for (; at != kNone; at = watchers_[at].next) {
    const Watcher& watcher = watchers_[at];
    if (nodes_[watcher.slot].version == watcher.version) queue(watcher.slot, watcher.next_good);
  }
}

void SubgraphRun::merge(uint32_t a, uint32_t b, double l) {
  const bool swap = nodes_[a].size != nodes_[b].size ? nodes_[a].size < nodes_[b].size
                                                     : nodes_[a].name > nodes_[b].name;
  if (swap) std::swap(a, b);
  const Node x = nodes_[a], y = nodes_[b];
  if (x.size + y.size > kLargestSum) {
    throw std::invalid_argument("the sizes of " + std::to_string(x.name) + " and " +
                                std::to_string(y.name) + " are " + std::to_string(x.size) +
                                " and " + std::to_string(y.size) +
                                "; their sum must be at most 2^53");
  }
  const double least = std::min({x.least, y.least, l});
  steps_.push_back({x.name, y.name, x.size, y.size, *own_[a].weights.find(b), l, least});

  const bool into_a = own_[a].weights.size() >= own_[b].weights.size();
  const uint32_t to = into_a ? a : b, from = into_a ? b : a;
  Node& node = nodes_[to];
  node.name = x.name;
  node.size = x.size + y.size;
  node.least = least;
  node.rank = std::min(x.rank, y.rank);
  nodes_[from].up = to;
  ++nodes_[from].version;
  ++node.version;
  move_neighbours(from, to);
  queue_watchers(from);
  queue_watchers(to);
  queue(to, kInfinity);
}

void SubgraphRun::move_neighbours(uint32_t from, uint32_t to) {
  FlatMap<Weight> given;
  given.swap(own_[from].weights);
  Vec<Entry>().swap(own_[from].heap);
  Neighbours& own = own_[to];
  given.erase(to);
  own.weights.erase(from);
  own.weights.reserve(own.weights.size() + given.size());
  pace_.step(8 * given.size());
  given.for_each([&](uint32_t c, const Weight& w) {
    Weight& sum = own.weights[c];
    sum += w;
    if (sum > largest_) {
      throw std::invalid_argument("the weight between the clusters " +
                                  std::to_string(nodes_[to].name) + " and " +
                                  std::to_string(nodes_[c].name) + " is " + std::to_string(sum) +
                                  "; sums must be at most 2^53: use a coarser resolution");
    }
    if (is_active(c)) {
      own_[c].weights.erase(from);
      own_[c].weights[to] = sum;
    }
    own.heap.push_back(entry(c, sum));
    std::push_heap(own.heap.begin(), own.heap.end());
  });
  // Outdated entries may be many: memory must be bounded by the neighbours, not by the pushes.
  if (own.heap.size() > 2 * own.weights.size() + 16) fill_heap(to);
}

}  // namespace dynhac
