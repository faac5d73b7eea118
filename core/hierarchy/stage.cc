#include "core/hierarchy/stage.h"

#include <algorithm>

namespace dynhac {

namespace {

bool by_ends(const Delta& x, const Delta& y) {
  return x.a != y.a ? x.a < y.a : x.b < y.b;
}

}  // namespace

void Engine::Stage::run(const Batch& batch, Poll* poll) {
  batch_ = batch;
  pace_ = Pace(poll);
  recycle(owners_);
  recycle(owner_begin_);
  recycle(edges_);
  recycle(unset_);
  remove_edges();
  remove_vertices();
  add_vertices();
  resolve_edges();
  group_by_owner();
  find_duplicates();
  set_weights();
}

Vertex Engine::Stage::find_end(int64_t key, size_t index, size_t end, const char* kind) const {
  const Vertex* v = engine_.ids_.find(key);
  if (v == nullptr) throw BatchError(kind, index, end);
  return *v;
}

void Engine::Stage::remove_edges() {
  const Level& level = *engine_.levels_[0];
  unset_.reserve(batch_.remove_u.size());
  for (size_t i = 0; i < batch_.remove_u.size(); ++i) {
    const Vertex u = find_end(batch_.remove_u[i], i, 0, "unknown_edge_end");
    const Vertex v = find_end(batch_.remove_v[i], i, 1, "unknown_edge_end");
    const uint32_t at = u == v ? kNone : level.find(u, v).at_u;
    if (at == kNone) throw BatchError("unknown_edge", i);
    unset_.push_back({std::min(u, v), std::max(u, v), level.edges(u)[at].weight});
    pace_.step(16);
  }
  std::sort(unset_.begin(), unset_.end(), by_ends);
  unset_.erase(std::unique(unset_.begin(), unset_.end(),
                           [](const Delta& x, const Delta& y) { return x.a == y.a && x.b == y.b; }),
               unset_.end());
}

void Engine::Stage::remove_vertices() {
  Level& level = *engine_.levels_[0];
  Vec<Vertex>& removed = engine_.pending_.removed;
  removed.reserve(batch_.remove.size());
  engine_.erased_.reserve(batch_.remove.size());
  for (size_t i = 0; i < batch_.remove.size(); ++i) {
    const Vertex v = find_end(batch_.remove[i], i, 0, "unknown_remove");
    uint32_t& slot = level.hot[v].slot;
    if (slot != kNone) throw BatchError("duplicate_remove", i, slot);
    slot = static_cast<uint32_t>(i);
    removed.push_back(v);
  }
  for (size_t i = 0; i < removed.size(); ++i) {
    const Vertex v = removed[i];
    engine_.erased_.push_back({engine_.keys_[v], v});
    engine_.ids_.erase(engine_.keys_[v]);
    engine_.nodes_.discard(level.cold[v].node);
    for (const Entry& e : level.edges(v)) {
      // Of two ends that are both removed, the first takes the weight off the total.
      const uint32_t slot = level.hot[e.neighbour].slot;
      if (slot == kNone || slot > i) engine_.total_ -= e.weight;
    }
    pace_.step(8 + level.edges(v).size());
  }
  auto removed_too = [&](const Delta& d) {
    return level.hot[d.a].slot != kNone || level.hot[d.b].slot != kNone;
  };
  std::erase_if(unset_, removed_too);
  for (const Vertex v : removed) level.hot[v].slot = kNone;
}

void Engine::Stage::add_vertices() {
  Level& level = *engine_.levels_[0];
  Vec<Vertex>& created = engine_.pending_.created;
  created.reserve(batch_.add.size());
  engine_.inserted_.reserve(batch_.add.size());
  engine_.ids_.reserve(engine_.ids_.size() + batch_.add.size());
  if (level.slots() + batch_.add.size() >= kNone / 2)
    throw BatchError("too_many", batch_.add.size() - 1);
  for (size_t i = 0; i < batch_.add.size(); ++i) {
    const int64_t key = batch_.add[i];
    const auto [known, added] = engine_.ids_.insert(key, kNone);
    if (!added) {
      const auto first = std::find(batch_.add.begin(), batch_.add.begin() + i, key);
      const size_t at = first - batch_.add.begin();
      throw at < i ? BatchError("duplicate_add", i, at) : BatchError("present", i);
    }
    engine_.inserted_.push_back({key, kNone});
    const Vertex v = level.create(1);
    *known = v;
    created.push_back(v);
    const NodeRef leaf = engine_.nodes_.create_leaf(v);
    level.cold[v].node = level.cold[v].old_node = leaf;
    if (engine_.keys_.size() <= v) engine_.keys_.resize(level.slots());
    engine_.keys_[v] = key;
    pace_.step(16);
  }
}

void Engine::Stage::resolve_edges() {
  edges_.reserve(batch_.u.size());
  int64_t last_key = 0;
  Vertex last = kNone;  // edges are often sorted by one end
  constexpr size_t kAhead = 12;
  for (size_t i = 0; i < std::min(kAhead, batch_.v.size()); ++i) {
    engine_.ids_.prefetch(batch_.v[i]);
  }
  for (size_t i = 0; i < batch_.u.size(); ++i) {
    if (i + kAhead < batch_.v.size()) engine_.ids_.prefetch(batch_.v[i + kAhead]);
    const Weight w = weight(i);
    const int64_t key = batch_.u[i];
    if (last == kNone || key != last_key) {
      last = find_end(key, i, 0, "unknown_endpoint");
      last_key = key;
    }
    const Vertex v = find_end(batch_.v[i], i, 1, "unknown_endpoint");
    engine_.levels_[0]->prefetch(v);
    if (last == v) throw BatchError("self_loop", i);
    edges_.push_back({last, v, w});
    pace_.step(4, 1);
  }
}

// A counting sort that touches only the vertices of the batch.
void Engine::Stage::group_by_owner() {
  Level& level = *engine_.levels_[0];
  for (Delta& d : edges_) {
    // The newer vertex owns the edge; of two new or two old ones, the one with the larger handle.
    const bool a_new = is_new(d.a), b_new = is_new(d.b);
    if (a_new != b_new ? b_new : d.b > d.a) std::swap(d.a, d.b);
    uint32_t& slot = level.hot[d.a].slot;
    if (slot == kNone) {
      slot = static_cast<uint32_t>(owners_.size());
      owners_.push_back(d.a);
      owner_begin_.push_back(0);
    }
    ++owner_begin_[slot];
    pace_.step();
  }
  owner_begin_.push_back(0);
  uint32_t end = 0;
  for (uint32_t& count : owner_begin_) count = end += count;
  if (owners_.size() > 1) {
    // Every entry is now the end of its owner's edges; filling backwards turns it into the begin.
    Vec<Delta> grouped(edges_.size());
    for (size_t i = edges_.size(); i-- > 0;) {
      grouped[--owner_begin_[level.hot[edges_[i].a].slot]] = edges_[i];
      pace_.step();
    }
    edges_.swap(grouped);
  } else if (owners_.size() == 1) {
    owner_begin_[0] = 0;
  }
  for (const Vertex v : owners_) level.hot[v].slot = kNone;
}

// A pair may be listed several times with the same weight; the first one is kept.
void Engine::Stage::find_duplicates() {
  Level& level = *engine_.levels_[0];
  uint32_t kept = 0;
  for (size_t o = 0; o < owners_.size(); ++o) {
    const uint32_t begin = owner_begin_[o], end = owner_begin_[o + 1], first = kept;
    for (uint32_t i = begin; i < end; ++i) {
      const Delta d = edges_[i];
      uint32_t& slot = level.hot[d.b].slot;
      if (slot == kNone) {
        slot = kept;
        edges_[kept++] = d;
      } else if (edges_[slot].w != d.w) {
        report_conflict(d.a, d.b);
      }
    }
    for (uint32_t i = first; i < kept; ++i) level.hot[edges_[i].b].slot = kNone;
    pace_.step(2 * (end - begin));
  }
  edges_.resize(kept);
}

// The first edge of the batch between a and b. (The last edge of the batch if there is none, which
// happens when the caller overwrites the arrays meanwhile.)
size_t Engine::Stage::index_of(Vertex a, Vertex b) const {
  const int64_t x = engine_.keys_[a], y = engine_.keys_[b];
  auto here = [&](size_t i) {
    const int64_t u = batch_.u[i], v = batch_.v[i];
    return (u == x && v == y) || (u == y && v == x);
  };
  size_t i = 0;
  while (i + 1 < batch_.u.size() && !here(i)) ++i;
  return i;
}

void Engine::Stage::report_conflict(Vertex a, Vertex b) const {
  const size_t first = index_of(a, b);
  const int64_t x = batch_.u[first], y = batch_.v[first];
  for (size_t i = first + 1; i < batch_.u.size(); ++i) {
    const int64_t u = batch_.u[i], v = batch_.v[i];
    const bool same_pair = (u == x && v == y) || (u == y && v == x);
    if (same_pair && weight(i) != weight(first)) {
      throw BatchError("weight_conflict", i, first);
    }
  }
  throw BatchError("weight_conflict", first, first);
}

// Edges of new vertices become fresh edges; others become differences to their present weight.
void Engine::Stage::set_weights() {
  const Level& level = *engine_.levels_[0];
  Vec<Delta>& deltas = engine_.pending_.deltas;
  size_t fresh = 0;
  for (const Delta& d : edges_) {
    pace_.step();
    if (is_new(d.a)) {
      edges_[fresh++] = d;
      continue;
    }
    Weight difference = d.w;
    const uint32_t at = level.find(d.a, d.b).at_u;
    if (at != kNone) difference -= level.edges(d.a)[at].weight;
    if (difference != 0) deltas.push_back({d.a, d.b, difference});
    if (!unset_.empty()) {
      const Delta key = {std::min(d.a, d.b), std::max(d.a, d.b), 0};
      const auto it = std::lower_bound(unset_.begin(), unset_.end(), key, by_ends);
      if (it != unset_.end() && it->a == key.a && it->b == key.b) it->w = 0;  // removed and set
    }
  }
  edges_.resize(fresh);
  for (const Delta& d : unset_) {
    if (d.w != 0) deltas.push_back({d.a, d.b, -d.w});
  }
  // Decreases first: the total must not overflow in between.
  for (const Delta& d : deltas) engine_.total_ += std::min<Weight>(d.w, 0);
  for (const Vec<Delta>* rising : {&deltas, &edges_}) {
    for (const Delta& d : *rising) {
      engine_.total_ += std::max<Weight>(d.w, 0);
      if (engine_.total_ > kLargestTotal) throw BatchError("total_overflow", index_of(d.a, d.b));
    }
  }
  edges_.swap(engine_.pending_.fresh);
}

}  // namespace dynhac
