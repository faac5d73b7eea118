// One level of the engine: a weighted graph whose vertices are clusters, with transactions.
//
// The record of a vertex has three parts, by access pattern. Hot is read by every scan of a
// neighbour's edges: 8 bytes, so that a whole level of them stays in the cache. Role decides
// whether a change at a neighbour matters. Cold is read only when the vertex itself is processed.
// The adjacency list is one block of entries: entry p of u holds the neighbour v, the weight, and
// the position (mirror) of u among the entries of v. So either end reaches the other's entry
// directly, and removing a neighbour of a hub does not search the hub's list.
//
// Invariants:
// - A dead entry has its own vertex as neighbour and weight 0, so scans need no test for it. Dead
//   entries form a list through `mirror` that starts at Cold::free_slots.
// - size == 0 iff the slot is not in use.
// - hi is the certificate: infinite for a vertex alone in its group, Rule::finished_limit for
//   a finished one (image == kNone). For a member of a larger group: while no linkage of any
//   member to outside the group grows past that member's hi, every merge of the group stays good
//   (see GroupRun::certify).
// - best and wmax are exact for vertices alone in their group, and undefined for others.
//
// Transactions: between begin() and commit() or rollback(), the first change of a record saves a
// copy (touch), and entries of blocks from before begin() are saved one by one. Slots and blocks
// are freed only by commit(), so that rollback() finds everything in place. Records are saved
// before they are changed, hence rollback() can undo the state that an exception leaves at any
// point.
//
// Several threads may work on a level at once, each on vertices that no other one touches, after
// provide(): every thread passes its hand (see Workers::for_ranges) to the functions that it calls.
// When they are done, gather() comes before other work.

#ifndef DYNHAC_HIERARCHY_LEVEL_H_
#define DYNHAC_HIERARCHY_LEVEL_H_

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "core/base/block_arena.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/progress.h"
#include "core/hierarchy/types.h"

namespace dynhac {

struct Hot {
  uint32_t size = 0;
  uint32_t slot = kNone;  // scratch of an update, kNone between its steps
};

struct alignas(32) Role {
  Vertex image = kNone;  // on the next level
  Vertex best = kNone;   // heaviest neighbour
  double hi = kInfinity;
  double wmax = kInfinity;
  uint32_t epoch = 0;  // update that last saved or created this record
};

// What happened to a vertex since the update began. Changed: it has other leaves. Adjusted: it has
// the same leaves and another least merge.
enum class State : uint8_t { kKept, kCreated, kChanged, kAdjusted, kRemoved };

struct alignas(64) Cold {
  std::byte* block = nullptr;
  uint32_t capacity = 0;
  uint32_t used = 0;  // entries, dead ones included
  uint32_t live = 0;
  uint32_t free_slots = kNone;
  uint32_t epoch = 0;        // update that last saved or created this record
  uint32_t block_epoch = 0;  // update that made the block
  NodeRef node = kNone;      // the cluster
  NodeRef old_node = kNone;  // node at the last run of its group; differs from it during updates
  Vertex next = kNone;       // next member of the same group; next free slot while not in use
  Vertex first = kNone;      // first member of the group whose image this is, on the level below
  uint32_t count = 0;        // number of these members
  State state = State::kKept;
  uint8_t flags = 0;  // scratch of an update
  double least_merge = kInfinity;
};

// The heaviest edge of a vertex so far, ties broken by edge_rank.
struct Heaviest {
  double wmax = 0;
  Vertex best = kNone;

  void offer(Vertex v, Vertex neighbour, double l) {
    if (l < wmax || l <= 0) return;
    if (l == wmax && edge_rank(v, best) > edge_rank(v, neighbour)) return;
    wmax = l;
    best = neighbour;
  }
};

struct Entry {
  Vertex neighbour;
  uint32_t mirror;
  Weight weight;
};
static_assert(sizeof(Entry) == BlockArena::kEntryBytes && sizeof(Cold) == 64 && sizeof(Role) == 32);

class Level {
 public:
  explicit Level(BlockArena* arena) : arena_(arena) {}
  ~Level();
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  Vec<Hot> hot;
  Vec<Role> role;
  Vec<Cold> cold;

  uint32_t slots() const { return static_cast<uint32_t>(hot.size()); }
  uint32_t alive() const { return alive_; }
  bool lives(Vertex v) const { return hot[v].size != 0; }
  bool is_alone(Vertex v) const { return role[v].hi == kInfinity; }
  size_t memory() const;

  // Includes dead entries. Only the functions below change entries.
  std::span<const Entry> edges(Vertex v) const { return {entries_of(cold[v]), cold[v].used}; }

  // Prefetching for loops over an adjacency list: first the records of a vertex some steps ahead,
  // then, when these have arrived, its entry.
  void prefetch(Vertex v) const {
    __builtin_prefetch(&hot[v]);
    __builtin_prefetch(&role[v]);
    __builtin_prefetch(&cold[v]);
  }
  void prefetch_edges(Vertex v, uint32_t count) const {
    for (uint32_t at = 0; at < std::min(count, cold[v].used); at += 4) prefetch_entry(v, at);
  }
  void prefetch_next_entry(Vertex v) const { prefetch_entry(v, cold[v].used); }
  void prefetch_entry(Vertex v, uint32_t at) const { __builtin_prefetch(entries_of(cold[v]) + at); }

  // Position of v among u's entries and of u among v's, found by a search of the shorter list;
  // {kNone, kNone} if there is no such edge.
  struct Place {
    uint32_t at_u, at_v;
  };
  Place find(Vertex u, Vertex v) const;

  Heaviest heaviest(Vertex v) const;

  // To be called before epochs restart from 1.
  void forget_epochs() noexcept;

  // --- Within a transaction.
  void begin(uint32_t epoch);
  void commit() noexcept;
  void rollback() noexcept;
  void provide(uint32_t hands);
  void gather();

  void touch(Vertex v, uint32_t hand = 0) {  // its size and its cold record
    if (cold[v].epoch != epoch_) save(v, hand);
  }
  Role& change_role(Vertex v, uint32_t hand = 0) {
    if (role[v].epoch != epoch_) save_role(v, hand);
    return role[v];
  }
  Vertex create(uint32_t size);  // State::kCreated, without edges
  void create_many(size_t count, Workers& workers, NewSlots& made);  // as create(1)
  void discard(Vertex v);  // its neighbours must have no entries about it, or be discarded too
  void reserve(Vertex v, uint32_t more, uint32_t hand = 0);
  uint32_t take_entry(Vertex v, uint32_t hand = 0);  // reserved before; to be written
  void write_entry(Vertex v, uint32_t at, const Entry& e) { entries_of(cold[v])[at] = e; }
  uint32_t add_edge(Vertex u, Vertex v, Weight w);  // its position among the entries of u
  void remove_edge(Vertex u, uint32_t at_u);
  // The other end may be in use by another hand, except for its weight.
  void set_weight(Vertex u, uint32_t at_u, Weight w, uint32_t hand = 0);
  void remove_entry(Vertex v, uint32_t at, uint32_t hand = 0);  // on the side of v only
  void compact_sparse(Pace pace);  // lists of mostly dead entries; positions change

 private:
  friend class EngineState;  // saves and restores what an update leaves behind

  struct SavedVertex {
    Vertex v;
    uint32_t size;
    std::array<std::byte, sizeof(Cold)> cold;  // without Cold's alignment, to save memory

    Cold record() const { return std::bit_cast<Cold>(cold); }
  };
  struct SavedRole {
    Vertex v;
    Role role;
  };
  struct SavedEntry {
    Entry* at;
    Entry entry;
  };
  // An entry may be saved several times: the first copy is the one to restore.
  struct Journal {
    Vec<SavedVertex> vertices;
    Vec<SavedRole> roles;
    Vec<SavedEntry> entries;
    Vec<Vertex> sparse;  // lists that may have become sparse, to be compacted
  };

  static Entry* entries_of(const Cold& c) { return reinterpret_cast<Entry*>(c.block); }
  // Calls visit for all, in order, between parallel loops.
  template <class Visit>
  void for_journals(Visit visit) {
    for (Journal& journal : earlier_) visit(journal);
    visit(journal_);
  }
  Journal& journal(uint32_t hand) { return hand == 0 ? journal_ : beside_[hand - 1]; }
  void save(Vertex v, uint32_t hand = 0);
  void save_role(Vertex v, uint32_t hand = 0);
  // The entry, saved if need be, to be overwritten.
  Entry& change(const Cold& c, uint32_t at, uint32_t hand = 0) {
    Entry* entry = entries_of(c) + at;
    if (c.block_epoch != epoch_) journal(hand).entries.push_back({entry, *entry});
    return *entry;
  }
  void restore(const Journal& journal) noexcept;
  void replace_block(Cold& c, std::byte* block, uint32_t capacity, uint32_t hand = 0);
  void compact(Vertex v);
  void close() noexcept;

  BlockArena* arena_;
  uint32_t alive_ = 0;
  Vertex free_ = kNone;  // slots not in use, linked through Cold::next
  // The transaction.
  uint32_t epoch_ = 0;
  uint32_t slots_before_ = 0, alive_before_ = 0;
  Vertex free_before_ = kNone;
  // In the order in which they were written: those of parallel loops that are over, with what came
  // before them; that of hand 0 since then; those of hands from 1 on, empty between such loops.
  Vec<Journal> earlier_;
  Journal journal_;
  Vec<Journal> beside_;
  Vec<Vertex> discarded_;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_LEVEL_H_
