#include "core/level.h"

#include <cstring>

namespace dynhac {

Level::~Level() {
  for (const Cold& c : cold) arena_->release(c.block, c.capacity);
}

size_t Level::memory() const {
  return hot.capacity() * sizeof(Hot) + cold.capacity() * sizeof(Cold) +
         vertices_.capacity() * sizeof(SavedVertex) + entries_.capacity() * sizeof(SavedEntry);
}

Level::Place Level::find(Vertex u, Vertex v) const {
  const bool from_u = cold[u].used <= cold[v].used;
  const Adjacency a = edges(from_u ? u : v);
  const Vertex other = from_u ? v : u;
  for (uint32_t p = 0; p < a.used; ++p) {
    if (a.neighbour[p] == other) {
      return from_u ? Place{p, a.mirror[p]} : Place{a.mirror[p], p};
    }
  }
  return {kNone, kNone};
}

Heaviest Level::heaviest(Vertex v) const {
  Heaviest found;
  const Adjacency a = edges(v);
  const uint32_t size = hot[v].size;
  for (uint32_t p = 0; p < a.used; ++p) {
    const Vertex y = a.neighbour[p];
    found.offer(v, y, linkage(a.weight[p], size, hot[y].size));
  }
  return found;
}

void Level::begin(uint32_t epoch) {
  epoch_ = epoch;
  slots_before_ = slots();
  alive_before_ = alive_;
  free_before_ = free_;
}

void Level::commit() noexcept {
  for (const SavedVertex& saved : vertices_) {
    if (saved.cold.block != cold[saved.v].block) {
      arena_->release(saved.cold.block, saved.cold.capacity);
    }
  }
  for (const Vertex v : discarded_) {
    arena_->release(cold[v].block, cold[v].capacity);
    const uint32_t epoch = cold[v].epoch;
    hot[v] = Hot{};
    cold[v] = Cold{};
    cold[v].epoch = epoch;
    hot[v].image = free_;
    free_ = v;
  }
  recycle(vertices_);
  recycle(entries_);
  recycle(discarded_);
  recycle(sparse_);
}

void Level::rollback() noexcept {
  for (size_t i = entries_.size(); i-- > 0;) {
    const SavedEntry& saved = entries_[i];
    const Adjacency a = view(saved.block, saved.capacity, 0);
    a.neighbour[saved.at] = saved.neighbour;
    a.mirror[saved.at] = saved.mirror;
    a.weight[saved.at] = saved.weight;
  }
  for (const SavedVertex& saved : vertices_) {
    Cold& c = cold[saved.v];
    if (c.block != saved.cold.block) arena_->release(c.block, c.capacity);
    hot[saved.v] = saved.hot;
    c = saved.cold;
  }
  for (Vertex v = slots_before_; v < slots(); ++v) {
    arena_->release(cold[v].block, cold[v].capacity);
  }
  hot.resize(slots_before_);
  cold.resize(slots_before_);
  for (Hot& h : hot) h.slot = kNone;
  for (Cold& c : cold) c.flags = 0;
  alive_ = alive_before_;
  free_ = free_before_;
  recycle(vertices_);
  recycle(entries_);
  recycle(discarded_);
  recycle(sparse_);
}

void Level::save(Vertex v) {
  vertices_.push_back({v, hot[v], cold[v]});
  cold[v].epoch = epoch_;
}

Vertex Level::create(uint32_t size) {
  Vertex v = free_;
  if (v != kNone) {
    save(v);
    free_ = hot[v].image;
    hot[v] = Hot{};
    cold[v] = Cold{};
  } else {
    v = slots();
    if (cold.size() == cold.capacity()) cold.reserve(2 * cold.size() + 4);
    hot.push_back(Hot{});
    cold.push_back(Cold{});
  }
  hot[v].size = size;
  cold[v].epoch = epoch_;
  cold[v].state = State::kCreated;
  ++alive_;
  return v;
}

void Level::discard(Vertex v) {
  touch(v);
  discarded_.push_back(v);
  hot[v].size = 0;
  --alive_;
}

void Level::reserve(Vertex v, uint32_t more) {
  Cold& c = cold[v];
  const uint32_t dead = c.used - c.live;
  if (dead + (c.capacity - c.used) >= more) return;
  touch(v);
  // A list that grows by one at a time must not be copied every time; a first block is cut to measure.
  const uint32_t needed = c.used + (more - dead);
  const uint32_t wanted = c.block == nullptr ? needed : std::max(needed, c.used + c.used / 4 + 1);
  const uint32_t capacity = BlockArena::capacity_for(wanted);
  std::byte* block = arena_->allocate(capacity);
  if (c.used > 0) {
    const Adjacency from = edges(v), to = view(block, capacity, c.used);
    std::memcpy(to.neighbour, from.neighbour, c.used * sizeof(uint32_t));
    std::memcpy(to.mirror, from.mirror, c.used * sizeof(uint32_t));
    std::memcpy(to.weight, from.weight, c.used * sizeof(Weight));
  }
  // A block of this transaction is in nobody's saved copy.
  if (c.block_epoch == epoch_) arena_->release(c.block, c.capacity);
  c.block = block;
  c.capacity = capacity;
  c.block_epoch = epoch_;
}

// The caller has reserved it.
uint32_t Level::take_entry(Vertex v) {
  touch(v);
  Cold& c = cold[v];
  uint32_t at = c.free_slots;
  if (at != kNone) {
    save_entry(c, at);
    c.free_slots = edges(v).mirror[at];
  } else {
    at = c.used++;
  }
  ++c.live;
  return at;
}

uint32_t Level::add_edge(Vertex u, Vertex v, Weight w) {
  reserve(u, 1);
  reserve(v, 1);
  const uint32_t at_u = take_entry(u), at_v = take_entry(v);
  const Adjacency a = edges(u), b = edges(v);
  a.neighbour[at_u] = v;
  a.mirror[at_u] = at_v;
  a.weight[at_u] = w;
  b.neighbour[at_v] = u;
  b.mirror[at_v] = at_u;
  b.weight[at_v] = w;
  return at_u;
}

void Level::remove_entry(Vertex v, uint32_t at) {
  touch(v);
  Cold& c = cold[v];
  save_entry(c, at);
  const uint32_t dead = c.used - c.live + 1;
  if (dead == c.live + 16) sparse_.push_back(v);
  const Adjacency a = edges(v);
  a.neighbour[at] = v;
  a.weight[at] = 0;
  a.mirror[at] = c.free_slots;
  c.free_slots = at;
  --c.live;
}

void Level::remove_edge(Vertex u, uint32_t at_u) {
  const Adjacency a = edges(u);
  const Vertex v = a.neighbour[at_u];
  const uint32_t at_v = a.mirror[at_u];
  remove_entry(u, at_u);
  remove_entry(v, at_v);
}

void Level::set_weight(Vertex u, uint32_t at_u, Weight w) {
  save_entry(cold[u], at_u);
  const Adjacency a = edges(u);
  a.weight[at_u] = w;
  const Vertex v = a.neighbour[at_u];
  const uint32_t at_v = a.mirror[at_u];
  save_entry(cold[v], at_v);
  edges(v).weight[at_v] = w;
}

void Level::compact_sparse() {
  for (size_t i = 0; i < sparse_.size(); ++i) {
    const Vertex v = sparse_[i];
    const Cold& c = cold[v];
    if (lives(v) && c.used - c.live >= c.live + 8) compact(v);
  }
  sparse_.clear();
}

void Level::compact(Vertex v) {
  touch(v);
  Cold& c = cold[v];
  const uint32_t capacity = BlockArena::capacity_for(c.live + c.live / 4);
  std::byte* block = arena_->allocate(capacity);
  const Adjacency from = edges(v), to = view(block, capacity, 0);
  uint32_t n = 0;
  for (uint32_t p = 0; p < from.used; ++p) {
    const Vertex u = from.neighbour[p];
    if (u == v) continue;
    to.neighbour[n] = u;
    to.mirror[n] = from.mirror[p];
    to.weight[n] = from.weight[p];
    ++n;
  }
  // The other ends, in a second pass: saving their entries may throw, and then the block is lost to
  // this list but not yet in it.
  try {
    for (uint32_t p = 0; p < n; ++p) save_entry(cold[to.neighbour[p]], to.mirror[p]);
  } catch (...) {
    arena_->release(block, capacity);
    throw;
  }
  for (uint32_t p = 0; p < n; ++p) edges(to.neighbour[p]).mirror[to.mirror[p]] = p;
  if (c.block_epoch == epoch_) arena_->release(c.block, c.capacity);
  c.block = block;
  c.capacity = capacity;
  c.block_epoch = epoch_;
  c.used = n;
  c.live = n;
  c.free_slots = kNone;
}

}  // namespace dynhac
