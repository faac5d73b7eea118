// The distinct vectors of an index, and the slots that hold each of them.
//
// Slots with equal vectors share a *place*: 0, 1, ..., without gaps; when the last slot of a place
// is removed, the last place moves into the gap. A search then examines hundreds of equal vectors
// once, and takes the smallest slots of a place when it has found it. Numbers are compared as
// numbers: 0.0 and -0.0 are equal.
//
// Vectors are read where the owner of the slots keeps them, or kept here, by place, if there is
// no such owner.
//
// Invariants:
// - place_of_[slot] is the place of a slot, or kNone.
// - first_[place] is its smallest slot. If it has several, pile_[place] is the number of the set of
//   all of them in piles_, else kNone. Sets that are in no place are in free_piles_.
// - Places are in chains by hash_[place], of their vector: heads_[hash mod its size], then next_.

#ifndef DYNHAC_NEIGHBORS_DISTINCT_VECTORS_H_
#define DYNHAC_NEIGHBORS_DISTINCT_VECTORS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/memory.h"
#include "core/hierarchy/types.h"
#include "core/neighbors/index.h"
#include "core/neighbors/rows.h"
#include "core/neighbors/sorted_chunks.h"

namespace dynhac {

// Rows are places.
class DistinctVectors : public VectorRows {
 public:
  static constexpr int64_t kLargestSlot = kNone - 1;

  explicit DistinctVectors(size_t dimension) : dimension_(dimension) {}

  void read_from(std::shared_ptr<const VectorRows> rows) { rows_ = std::move(rows); }

  size_t n_slots() const { return n_slots_; }
  size_t n_places() const { return first_.size(); }
  size_t top() const { return place_of_.size(); }  // slots are below it
  bool holds(int64_t slot) const { return place_of(slot) != kNone; }
  uint32_t place_of(int64_t slot) const {  // of any slot >= 0; kNone if it is not held
    return static_cast<size_t>(slot) < place_of_.size() ? place_of_[static_cast<size_t>(slot)]
                                                        : kNone;
  }
  const float* row(int64_t place) const override {
    const auto at = static_cast<size_t>(place);
    return rows_ != nullptr ? rows_->row(first_[at]) : own_.data() + at * dimension_;
  }

  uint32_t first_slot(uint32_t place) const { return first_[place]; }
  bool has_one_slot(uint32_t place) const { return pile_[place] == kNone; }

  // The place of a vector, kNone if it is not held.
  uint32_t find(const float* vector) const {
    return heads_.empty() ? kNone : find(vector, hash_of(vector));
  }

  // Calls visit(slot) for the slots of a place, ascending, until it returns false.
  template <class Visit>
  void each_slot(uint32_t place, Visit visit) const {
    if (pile_[place] == kNone) {
      visit(int64_t{first_[place]});
      return;
    }
    for (const Vec<uint32_t>& chunk : piles_[pile_[place]].chunks()) {
      for (const uint32_t slot : chunk) {
        if (!visit(int64_t{slot})) return;
      }
    }
  }

  // Throw SlotError if slots cannot be added or removed: held already or not held, listed twice,
  // or out of range.
  void require_new(std::span<const int64_t> slots) const;
  void require_held(std::span<const int64_t> slots) const;

  // Makes room for slots, which `add` needs. All or nothing.
  void reserve(std::span<const int64_t> slots);
  // Adds a slot that is new. Returns whether its vector is; it has the last place then. All or
  // nothing.
  bool add(int64_t slot, const float* vector);

  // What a removal did to places.
  struct Removed {
    uint32_t place;  // that is no longer used; kNone if its vector has other slots
    uint32_t moved;  // the last place, which has moved there; kNone if it was the last itself
  };
  // Removes a slot that is held.
  Removed remove(int64_t slot) noexcept;

  size_t memory() const;

 private:
  uint32_t& head(uint32_t hash) { return heads_[hash & (heads_.size() - 1)]; }
  uint32_t hash_of(const float* vector) const;
  uint32_t find(const float* vector, uint32_t hash) const;
  void rehash() noexcept;
  void join(uint32_t slot, uint32_t place);
  Removed close(uint32_t place) noexcept;

  size_t dimension_;
  std::shared_ptr<const VectorRows> rows_;
  size_t n_slots_ = 0;
  Vec<uint32_t> place_of_;
  Vec<uint32_t> first_, pile_, hash_, next_;
  Vec<uint32_t> heads_;  // as many as a power of two
  Vec<SortedChunks> piles_;
  Vec<uint32_t> free_piles_;  // has room for all piles
  Vec<float> own_;            // by place, if rows_ is nullptr
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_DISTINCT_VECTORS_H_
