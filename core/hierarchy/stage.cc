#include "core/hierarchy/stage.h"

#include <algorithm>
#include <atomic>

#include "core/base/partition.h"

namespace dynhac {

namespace {

constexpr size_t kRange = size_t{1} << 14;    // edges or vertices of one piece of parallel work
constexpr size_t kRemoved = 256;              // vertices to remove of one piece
constexpr size_t kManyIds = size_t{1} << 12;  // from here on they are inserted in parallel

bool by_ends(const Delta& x, const Delta& y) {
  return x.a != y.a ? x.a < y.a : x.b < y.b;
}

}  // namespace

void Engine::Stage::run(const Batch& batch, Poll* poll) {
  batch_ = batch;
  pace_ = Pace(poll);
  recycle(edges_);
  recycle(unset_);
  remove_edges();
  remove_vertices();
  add_vertices();
  resolve_edges();
  split_edges();
  add_up_weights();
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
  for (const Vertex v : removed) {
    engine_.erased_.push_back({engine_.keys_[v], v});
    engine_.ids_.erase(engine_.keys_[v]);
    engine_.nodes_.discard(level.cold[v].node);
    pace_.step(8);
  }
  std::atomic<Weight> total{engine_.total_};
  engine_.workers_.for_ranges(removed.size(), kRemoved,
                              [&](size_t begin, size_t end, uint32_t hand) {
                                Weight sum = 0;
                                for (size_t i = begin; i < end; ++i) {
                                  const std::span<const Entry> entries = level.edges(removed[i]);
                                  for (const Entry& e : entries) {
                                    // Of two ends that are both removed, the first takes the weight
                                    // off the total.
                                    const uint32_t slot = level.hot[e.neighbour].slot;
                                    if (slot == kNone || slot > i) sum += e.weight;
                                  }
                                  if (Workers::is_caller(hand)) pace_.step(entries.size());
                                }
                                total.fetch_sub(sum, std::memory_order_relaxed);
                              });
  engine_.total_ = total;
  auto removed_too = [&](const Delta& d) {
    return level.hot[d.a].slot != kNone || level.hot[d.b].slot != kNone;
  };
  std::erase_if(unset_, removed_too);
  for (const Vertex v : removed) level.hot[v].slot = kNone;
}

void Engine::Stage::add_vertices() {
  const size_t count = batch_.add.size();
  if (count == 0) return;
  Level& level = *engine_.levels_[0];
  if (level.slots() + count >= kNone / 2) throw BatchError("too_many", count - 1);
  level.create_many(count, engine_.workers_, vertices_);
  make_room(engine_.keys_, level.slots());
  engine_.keys_.resize(level.slots());
  insert_ids();
  engine_.nodes_.create_many(count, engine_.workers_, leaves_);
  const int64_t first_id = engine_.nodes_.take_leaf_ids(count);
  Vec<Vertex>& created = engine_.pending_.created;
  created.resize(count);
  engine_.workers_.for_ranges(count, kRange, [&](size_t begin, size_t end, uint32_t hand) {
    for (size_t i = begin; i < end; ++i) {
      const Vertex v = created[i] = vertices_[i];
      const NodeRef leaf = leaves_[i];
      Node& node = engine_.nodes_.nodes[leaf];
      node.left = v;
      node.size = 1;
      node.id = first_id + static_cast<int64_t>(i);
      level.cold[v].node = level.cold[v].old_node = leaf;
    }
    if (Workers::is_caller(hand)) pace_.step(8 * (end - begin));
  });
}

// Into ids_, keys_ and inserted_. The batch is read once: its caller may overwrite it meanwhile.
void Engine::Stage::insert_ids() {
  const size_t count = batch_.add.size();
  engine_.inserted_.reserve(count);
  if (count < Workers::range_size(kManyIds)) {
    insert_ids_one_by_one();
    return;
  }
  Vec<int64_t> keys(batch_.add.begin(), batch_.add.end());
  if (!engine_.ids_.insert_new(engine_.workers_, std::span<const int64_t>(keys),
                               [&](size_t i) { return vertices_[i]; })) {
    insert_ids_one_by_one();  // which finds the one to report
    return;
  }
  engine_.inserted_.resize(count);
  engine_.workers_.for_ranges(count, kRange, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) {
      engine_.inserted_[i] = {keys[i], kNone};
      engine_.keys_[vertices_[i]] = keys[i];
    }
  });
}

void Engine::Stage::insert_ids_one_by_one() {
  const auto begin = batch_.add.begin();
  engine_.ids_.reserve(engine_.ids_.size() + batch_.add.size());
  for (size_t i = 0; i < batch_.add.size(); ++i) {
    const int64_t key = batch_.add[i];
    const Vertex v = vertices_[i];
    if (!engine_.ids_.insert(key, v).second) {
      const size_t at = std::find(begin, begin + i, key) - begin;
      throw at < i ? BatchError("duplicate_add", i, at) : BatchError("present", i);
    }
    engine_.inserted_.push_back({key, kNone});
    engine_.keys_[v] = key;
    pace_.step(16);
  }
}

void Engine::Stage::resolve_edges() {
  edges_.resize(batch_.u.size());
  engine_.workers_.for_ranges(edges_.size(), kRange, [&](size_t begin, size_t end, uint32_t hand) {
    resolve(begin, end);
    const size_t count = end - begin;
    if (Workers::is_caller(hand))
      pace_.step(4 * count, count * (hand == 0 ? 1 : engine_.workers_.count()));
  });
}

void Engine::Stage::resolve(size_t begin, size_t end) {
  int64_t last_key = 0;
  Vertex last = kNone;  // edges are often sorted by one end
  const bool all_new = engine_.levels_[0]->alive() == batch_.add.size();
  constexpr size_t kAhead = 12;
  for (size_t i = begin; i < std::min(begin + kAhead, end); ++i) {
    engine_.ids_.prefetch(batch_.v[i]);
  }
  for (size_t i = begin; i < end; ++i) {
    if (i + kAhead < end) engine_.ids_.prefetch(batch_.v[i + kAhead]);
    const Weight w = weight(i);
    const int64_t key = batch_.u[i];
    if (last == kNone || key != last_key) {
      last = find_end(key, i, 0, "unknown_endpoint");
      last_key = key;
    }
    const Vertex v = find_end(batch_.v[i], i, 1, "unknown_endpoint");
    if (!all_new) engine_.levels_[0]->prefetch(v);
    if (last == v) throw BatchError("self_loop", i);
    edges_[i] = {last, v, w};
  }
  // The newer vertex owns the edge; of two new or two old ones, the one with the larger handle.
  // (After the first loop, so that the prefetched records have arrived.)
  for (size_t i = begin; i < end; ++i) {
    Delta& d = edges_[i];
    const bool a_new = all_new || is_new(d.a), b_new = all_new || is_new(d.b);
    if (a_new != b_new ? b_new : d.b > d.a) std::swap(d.a, d.b);
  }
}

// Edges of new vertices become fresh edges; others become differences to their present weight.
void Engine::Stage::split_edges() {
  const size_t count = edges_.size();
  Vec<Delta>& deltas = engine_.pending_.deltas;
  if (shares_.empty()) shares_.resize(engine_.workers_.hands());
  if (count < Workers::range_size(kRange)) {
    edges_.resize(split(edges_, shares_[0], true, deltas));
  } else {
    const auto [least, most] = owners();  // of a batch, they are often those of the newest slots
    const KeyRanges ranges(most - least + 1, count, kRange, least);
    Vec<Delta> parted(count);
    const Vec<size_t> begins = partition(
        engine_.workers_, count, ranges.buckets, parted.data(),
        [&](size_t i) { return ranges.of(edges_[i].a); }, [&](size_t i) { return edges_[i]; },
        [&](size_t read) { pace_.step(2 * read); });
    Vec<size_t> kept(ranges.buckets);
    Vec<Vec<Delta>> changed(ranges.buckets);
    engine_.workers_.run(ranges.buckets, [&](size_t i, uint32_t thread) {
      const std::span<Delta> part(parted.begin() + begins[i], parted.begin() + begins[i + 1]);
      kept[i] = split(part, shares_[thread + 1], false, changed[i]);
      if (thread == 0) pace_.step(8 * part.size());
    });
    append_all(engine_.workers_, deltas, changed);
    size_t fresh = 0;
    for (const size_t size : kept) fresh += size;
    if (fresh == count) {
      edges_.swap(parted);
    } else {
      edges_.clear();
      Vec<std::span<const Delta>> parts;
      for (size_t i = 0; i < kept.size(); ++i) parts.push_back({&parted[begins[i]], kept[i]});
      append_all(engine_.workers_, edges_, parts);
    }
  }
  for (const Delta& d : unset_) {
    if (d.w != 0) deltas.push_back({d.a, d.b, -d.w});
  }
}

// The least and the largest owner of an edge.
std::pair<Vertex, Vertex> Engine::Stage::owners() {
  Vec<std::pair<Vertex, Vertex>> of(Workers::ranges(edges_.size(), kRange));
  engine_.workers_.for_ranges_numbered(edges_.size(), kRange,
                                       [&](size_t range, size_t begin, size_t end, uint32_t) {
                                         Vertex least = edges_[begin].a, most = least;
                                         for (size_t i = begin; i < end; ++i) {
                                           least = std::min(least, edges_[i].a);
                                           most = std::max(most, edges_[i].a);
                                         }
                                         of[range] = {least, most};
                                       });
  auto [least, most] = of[0];
  for (const auto& [low, high] : of) {
    least = std::min(least, low);
    most = std::max(most, high);
  }
  return {least, most};
}

// Brings the fresh edges to the front, grouped by owner, and returns their number.
size_t Engine::Stage::split(std::span<Delta> edges, Share& share, bool alone, Vec<Delta>& deltas) {
  group_by_owner(edges, share);
  return set_weights(edges.first(drop_duplicates(edges, share, alone)), deltas);
}

// A counting sort that touches only the vertices of the batch.
void Engine::Stage::group_by_owner(std::span<Delta> edges, Share& share) {
  Level& level = *engine_.levels_[0];
  share.owners.clear();
  share.owner_begin.clear();
  for (const Delta& d : edges) {
    uint32_t& slot = level.hot[d.a].slot;
    if (slot == kNone) {
      slot = static_cast<uint32_t>(share.owners.size());
      share.owners.push_back(d.a);
      share.owner_begin.push_back(0);
    }
    ++share.owner_begin[slot];
  }
  share.owner_begin.push_back(0);
  uint32_t end = 0;
  for (uint32_t& count : share.owner_begin) count = end += count;
  if (share.owners.size() > 1) {
    // Every entry is now the end of its owner's edges; filling backwards turns it into the begin.
    share.grouped.resize(edges.size());
    for (size_t i = edges.size(); i-- > 0;) {
      share.grouped[--share.owner_begin[level.hot[edges[i].a].slot]] = edges[i];
    }
    std::copy(share.grouped.begin(), share.grouped.end(), edges.begin());
    recycle(share.grouped);
  } else if (share.owners.size() == 1) {
    share.owner_begin[0] = 0;
  }
  for (const Vertex v : share.owners) level.hot[v].slot = kNone;
}

// A pair may be listed several times with the same weight; the first one is kept. Where it is, the
// slot of the other end tells; if other threads use the slots too, the share has slots of its own.
size_t Engine::Stage::drop_duplicates(std::span<Delta> edges, Share& share, bool alone) {
  Level& level = *engine_.levels_[0];
  uint32_t kept = 0;
  for (size_t o = 0; o < share.owners.size(); ++o) {
    const uint32_t begin = share.owner_begin[o], end = share.owner_begin[o + 1], first = kept;
    if (!alone) {
      recycle(share.slots);
      share.slots.reserve(end - begin);
    }
    for (uint32_t i = begin; i < end; ++i) {
      const Delta d = edges[i];
      uint32_t& slot = alone ? level.hot[d.b].slot : share.slots[d.b].at;
      if (slot == kNone) {
        slot = kept;
        edges[kept++] = d;
      } else if (edges[slot].w != d.w) {
        report_conflict(d.a, d.b);
      }
    }
    for (uint32_t i = first; alone && i < kept; ++i) level.hot[edges[i].b].slot = kNone;
  }
  return kept;
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

size_t Engine::Stage::set_weights(std::span<Delta> edges, Vec<Delta>& deltas) {
  const Level& level = *engine_.levels_[0];
  size_t fresh = 0;
  for (const Delta& d : edges) {
    if (is_new(d.a)) {
      edges[fresh++] = d;
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
  return fresh;
}

void Engine::Stage::add_up_weights() {
  const Vec<Delta>& deltas = engine_.pending_.deltas;
  // Decreases first: the total must not overflow in between.
  for (const Delta& d : deltas) engine_.total_ += std::min<Weight>(d.w, 0);
  const Weight room = kLargestTotal - engine_.total_;
  auto add = [room](const Delta& d, Weight& sum) {  // returns whether it fits
    const Weight rise = std::max<Weight>(d.w, 0);
    if (rise > room - sum) return false;
    sum += rise;
    return true;
  };
  bool fits = true;
  Weight sum = 0;
  for (const Delta& d : deltas) fits = fits && add(d, sum);
  if (Workers::ranges(edges_.size(), kRange) <= 1) {
    for (const Delta& d : edges_) fits = fits && add(d, sum);
  } else {
    constexpr Weight kTooMuch = -1;
    Vec<Weight> sums(Workers::ranges(edges_.size(), kRange), 0);
    engine_.workers_.for_ranges_numbered(edges_.size(), kRange,
                                         [&](size_t range, size_t begin, size_t end, uint32_t) {
                                           Weight part = 0;
                                           bool fit = true;
                                           for (size_t i = begin; i < end; ++i)
                                             fit = fit && add(edges_[i], part);
                                           sums[range] = fit ? part : kTooMuch;
                                         });
    for (const Weight part : sums) fits = fits && part != kTooMuch && add({0, 0, part}, sum);
  }
  if (!fits) {
    sum = 0;
    for (const Vec<Delta>* rising : {&deltas, static_cast<const Vec<Delta>*>(&edges_)}) {
      for (const Delta& d : *rising) {
        if (!add(d, sum)) throw BatchError("total_overflow", index_of(d.a, d.b));
      }
    }
  }
  engine_.total_ += sum;
  edges_.swap(engine_.pending_.fresh);
}

}  // namespace dynhac
