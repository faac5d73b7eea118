#include "core/hierarchy/level.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace dynhac {

Level::~Level() {
  for (const Cold& c : cold) arena_->release(c.block, c.capacity);
}

size_t Level::memory() const {
  return hot.capacity() * sizeof(Hot) + role.capacity() * sizeof(Role) +
         cold.capacity() * sizeof(Cold) + journal_.vertices.capacity() * sizeof(SavedVertex) +
         journal_.entries.capacity() * sizeof(SavedEntry);
}

Level::Place Level::find(Vertex u, Vertex v) const {
  const bool from_u = cold[u].used <= cold[v].used;
  const std::span<const Entry> entries = edges(from_u ? u : v);
  const Vertex other = from_u ? v : u;
  for (uint32_t p = 0; p < entries.size(); ++p) {
    if (entries[p].neighbour == other) {
      return from_u ? Place{p, entries[p].mirror} : Place{entries[p].mirror, p};
    }
  }
  return {kNone, kNone};
}

Heaviest Level::heaviest(Vertex v) const {
  Heaviest found;
  const uint32_t size = hot[v].size;
  for (const Entry& e : edges(v)) {
    found.offer(v, e.neighbour, linkage(e.weight, size, hot[e.neighbour].size));
  }
  return found;
}

void Level::forget_epochs() noexcept {
  for (Role& r : role) r.epoch = 0;
  for (Cold& c : cold) c.epoch = c.block_epoch = 0;
}

void Level::begin(uint32_t epoch) {
  epoch_ = epoch;
  slots_before_ = slots();
  alive_before_ = alive_;
  free_before_ = free_;
}

void Level::provide(uint32_t hands) {
  arena_->provide(hands);
  beside_.resize(hands - 1);
}

void Level::gather() {
  earlier_.reserve(earlier_.size() + 1 + beside_.size());
  earlier_.push_back(std::exchange(journal_, {}));
  std::move(beside_.begin(), beside_.end(), std::back_inserter(earlier_));
  beside_.clear();
}

void Level::commit() noexcept {
  for_journals([&](const Journal& journal) {
    for (size_t i = 0; i < journal.vertices.size(); ++i) {
      constexpr size_t kAhead = 32;
      if (i + kAhead < journal.vertices.size()) {
        __builtin_prefetch(&cold[journal.vertices[i + kAhead].v]);
      }
      const SavedVertex& saved = journal.vertices[i];
      const Cold before = saved.record();
      if (before.block != cold[saved.v].block) arena_->release(before.block, before.capacity);
    }
  });
  for (const Vertex v : discarded_) {
    arena_->release(cold[v].block, cold[v].capacity);
    hot[v] = Hot{};
    role[v] = Role{};
    cold[v] = Cold{};
    cold[v].next = free_;
    free_ = v;
  }
  close();
}

void Level::restore(const Journal& journal) noexcept {
  const auto& entries = journal.entries;
  for (size_t i = entries.size(); i-- > 0;) *entries[i].at = entries[i].entry;
  for (const SavedVertex& saved : journal.vertices) {
    Cold& c = cold[saved.v];
    const Cold before = saved.record();
    if (c.block != before.block) arena_->release(c.block, c.capacity);
    hot[saved.v].size = saved.size;
    c = before;
  }
  for (const SavedRole& saved : journal.roles) role[saved.v] = saved.role;
}

void Level::rollback() noexcept {
  // The newest first: an entry may be in several.
  for (const Journal& journal : beside_) restore(journal);
  restore(journal_);
  for (size_t i = earlier_.size(); i-- > 0;) restore(earlier_[i]);
  for (Vertex v = slots_before_; v < slots(); ++v) {
    arena_->release(cold[v].block, cold[v].capacity);
  }
  hot.resize(slots_before_);
  role.resize(slots_before_);
  cold.resize(slots_before_);
  for (Hot& h : hot) h.slot = kNone;
  for (Cold& c : cold) c.flags = 0;
  alive_ = alive_before_;
  free_ = free_before_;
  close();
}

void Level::close() noexcept {
  beside_.clear();
  earlier_.clear();
  recycle(journal_.vertices);
  recycle(journal_.roles);
  recycle(journal_.entries);
  recycle(journal_.sparse);
  recycle(discarded_);
}

void Level::save(Vertex v, uint32_t hand) {
  journal(hand).vertices.push_back(
      {v, hot[v].size, std::bit_cast<std::array<std::byte, sizeof(Cold)>>(cold[v])});
  cold[v].epoch = epoch_;
}

void Level::save_role(Vertex v, uint32_t hand) {
  journal(hand).roles.push_back({v, role[v]});
  role[v].epoch = epoch_;
}

Vertex Level::create(uint32_t size) {
  Vertex v = free_;
  if (v != kNone) {
    save(v);
    save_role(v);
    free_ = cold[v].next;
    role[v] = Role{};
    cold[v] = Cold{};
  } else {
    v = slots();
    // Reserved first, so that either all three grow or none.
    if (cold.size() == cold.capacity()) cold.reserve(2 * cold.size() + 4);
    if (role.size() == role.capacity()) role.reserve(2 * role.size() + 4);
    hot.push_back(Hot{});
    role.push_back(Role{});
    cold.push_back(Cold{});
  }
  hot[v].size = size;
  role[v].epoch = epoch_;
  cold[v].epoch = epoch_;
  cold[v].state = State::kCreated;
  ++alive_;
  return v;
}

void Level::create_many(size_t count, Workers& workers, NewSlots& made) {
  made.reused.clear();
  if (count == 0) return;
  for (; count > 0 && free_ != kNone; --count) made.reused.push_back(create(1));
  made.first = slots();
  const size_t size = made.first + count;
  // Reserved first, so that either all three grow or none.
  make_room(cold, size);
  make_room(role, size);
  make_room(hot, size);
  hot.resize(size);
  role.resize(size);
  cold.resize(size);
  workers.for_ranges(count, size_t{1} << 13, [&](size_t begin, size_t end, uint32_t) {
    for (size_t v = made.first + begin; v < made.first + end; ++v) {
      hot[v].size = 1;
      role[v].epoch = cold[v].epoch = epoch_;
      cold[v].state = State::kCreated;
    }
  });
  alive_ += static_cast<uint32_t>(count);
}

void Level::discard(Vertex v) {
  touch(v);
  discarded_.push_back(v);
  hot[v].size = 0;
  --alive_;
}

void Level::reserve(Vertex v, uint32_t more, uint32_t hand) {
  Cold& c = cold[v];
  const uint32_t dead = c.used - c.live;
  if (dead + (c.capacity - c.used) >= more) return;
  touch(v, hand);
  // A list that grows by one at a time must not be copied every time. A first block has little
  // spare room, since there may be very many of them.
  const uint32_t needed = c.used + (more - dead);
  const uint32_t wanted =
      c.block == nullptr ? needed + (needed + 8) / 16 : std::max(needed, c.used + c.used / 4 + 1);
  const uint32_t capacity = BlockArena::capacity_for(wanted);
  std::byte* block = arena_->allocate(capacity, hand);
  if (c.used > 0) std::memcpy(block, c.block, c.used * sizeof(Entry));
  replace_block(c, block, capacity, hand);
}

void Level::replace_block(Cold& c, std::byte* block, uint32_t capacity, uint32_t hand) {
  // No saved copy refers to a block of this transaction.
  if (c.block_epoch == epoch_) arena_->release(c.block, c.capacity, hand);
  c.block = block;
  c.capacity = capacity;
  c.block_epoch = epoch_;
}

uint32_t Level::take_entry(Vertex v, uint32_t hand) {
  touch(v, hand);
  Cold& c = cold[v];
  uint32_t at = c.free_slots;
  if (at != kNone) {
    c.free_slots = change(c, at, hand).mirror;
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
  entries_of(cold[u])[at_u] = {v, at_v, w};
  entries_of(cold[v])[at_v] = {u, at_u, w};
  return at_u;
}

void Level::remove_entry(Vertex v, uint32_t at, uint32_t hand) {
  touch(v, hand);
  Cold& c = cold[v];
  const uint32_t dead = c.used - c.live + 1;
  if (dead == c.live + 16) journal(hand).sparse.push_back(v);
  change(c, at, hand) = {v, c.free_slots, 0};
  c.free_slots = at;
  --c.live;
}

void Level::remove_edge(Vertex u, uint32_t at_u) {
  const Entry e = edges(u)[at_u];
  remove_entry(u, at_u);
  remove_entry(e.neighbour, e.mirror);
}

void Level::set_weight(Vertex u, uint32_t at_u, Weight w, uint32_t hand) {
  Entry& e = change(cold[u], at_u, hand);
  e.weight = w;
  change(cold[e.neighbour], e.mirror, hand).weight = w;
}

void Level::compact_sparse(Pace pace) {
  for_journals([&](Journal& journal) {
    for (const Vertex v : journal.sparse) {
      const Cold& c = cold[v];
      pace.step(8 + 4 * size_t{c.used});
      if (lives(v) && c.used - c.live >= c.live + 8) compact(v);
    }
    journal.sparse.clear();
  });
}

void Level::compact(Vertex v) {
  touch(v);
  Cold& c = cold[v];
  // Saving the other ends may throw, so it comes before the block is allocated.
  for (const Entry& e : edges(v)) {
    if (e.neighbour != v) change(cold[e.neighbour], e.mirror);
  }
  const uint32_t capacity = BlockArena::capacity_for(c.live + c.live / 4);
  std::byte* block = arena_->allocate(capacity);
  uint32_t n = 0;
  for (const Entry& e : edges(v)) {
    if (e.neighbour == v) continue;
    entries_of(cold[e.neighbour])[e.mirror].mirror = n;
    reinterpret_cast<Entry*>(block)[n++] = e;
  }
  replace_block(c, block, capacity);
  c.used = c.live = n;
  c.free_slots = kNone;
}

}  // namespace dynhac
