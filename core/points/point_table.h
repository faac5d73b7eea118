// The points of a model by slot: their keys, vectors, times and order of arrival.
//
// A slot is a row of every array here, and the name of the point in a neighbour index. New points
// take the lowest slots that were free before their batch; so the slots, which break ties between
// neighbours at one distance, follow from the batches alone.
//
// New points come in two steps. `reserve` gives them slots and writes their vectors, which nobody
// sees; `commit` lets them be there, and others go. In between they are *pending*, and may be given
// back. There is one such batch at a time.
//
// Invariants:
// - A slot is in use if and only if its arrival number is >= 0. Slots from top() on never were.
// - slot_of_ has the key of every slot in use, and no other.
// - free_ is a heap of the slots below top() that are neither in use nor pending.
// - ages_, once anybody has asked for the oldest points, is a heap with an entry for every slot in
//   use, the oldest first. Others are *stale*: their slot has another arrival number by now.
//
// The age of a point is its time and, among equals or without times, its arrival. A time is held as
// its *order*, an int64: an int is its own, and the orders of floats (see order_of) compare as they
// do. Times are all ints or all floats, and ints that floats can stand for may become floats.

#ifndef DYNHAC_POINTS_POINT_TABLE_H_
#define DYNHAC_POINTS_POINT_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "core/base/flat_map.h"
#include "core/base/memory.h"

namespace dynhac {

enum class Times : uint8_t { kNone, kInts, kFloats };

int64_t order_of(double time);  // which is finite; -0.0 is 0.0
double time_of(int64_t order);  // the other way round

class PointTable {
 public:
  // What a table goes on from: columns with an entry, or a row, for every slot below top.
  struct State {
    Vec<int64_t> keys, arrival;  // arrival is kFree where a slot is free
    Vec<float> vectors;
    Times kind = Times::kNone;
    Vec<int64_t> times;  // their orders, if there are any
    int64_t next_arrival = 0, next_id = 0;
  };

  // What comes: a row of `vectors` for every new point, and the order of its time, if points have
  // times. `arrivals` are their numbers, ascending, by default the next ones (empty); the counters
  // move on to what is given here when they are committed.
  struct NewPoints {
    std::span<const float> vectors;
    std::span<const int64_t> times, arrivals;
    int64_t next_arrival, next_id;
  };

  static constexpr int64_t kFree = -1;

  explicit PointTable(size_t dimension, Times kind = Times::kNone)
      : dimension_(dimension), kind_(kind) {}
  // Throws std::invalid_argument if it is not the state of a table.
  PointTable(size_t dimension, State state);

  size_t dimension() const { return dimension_; }
  size_t size() const { return slot_of_.size(); }
  size_t top() const { return top_; }
  int64_t version() const { return version_; }  // grows with every commit
  int64_t next_arrival() const { return next_arrival_; }
  int64_t next_id() const { return next_id_; }  // larger than any key that was ever used
  size_t bytes() const;

  Vec<int64_t> used() const;      // ascending
  Vec<int64_t> in_order() const;  // of arrival

  // By slot. kFree for those that are not in use, also where there is no such slot.
  int64_t arrival(int64_t slot) const;
  // Of points that are there or pending; std::out_of_range for slots that never were.
  Vec<int64_t> keys_of(std::span<const int64_t> slots) const;
  void to_keys(std::span<int64_t> slots) const;  // in place
  Vec<float> vectors_of(std::span<const int64_t> slots) const;
  // -1 for keys that are not there.
  Vec<int64_t> find(std::span<const int64_t> keys) const;
  State state() const;  // free slots are zero: tables that hold the same have the same state

  Times kind() const { return kind_; }
  Vec<int64_t> times_of(std::span<const int64_t> slots) const;  // their orders; 0 without times
  // The order of the latest time that a point had since the times were recoded; of none, none.
  std::optional<int64_t> latest() const { return latest_; }
  // Lets ints be floats, which must be able to stand for those of points in use, or be ints again.
  void recode(Times kind) noexcept;
  // The oldest first: `count` of them, and all from before a time, without those to leave out.
  Vec<int64_t> oldest(size_t count, std::optional<int64_t> before, std::span<const int64_t> but);

  // Returns the slots of new points, ascending, in the order of their vectors. All or nothing; what
  // was pending before is given back.
  Vec<int64_t> reserve(const NewPoints& points);
  // Tells the keys of the pending points. std::invalid_argument: there are not as many.
  void name(std::span<const int64_t> keys);
  void give_back() noexcept;

  // Before a commit: std::invalid_argument if a slot is not in use; makes room for what it leaves.
  void expect_to_leave(std::span<const int64_t> slots);
  // Lets these slots go and the pending points in. Their keys must be new, or those of points that
  // go; no slot may be listed twice.
  void commit(std::span<const int64_t> leaving) noexcept;

 private:
  void push_free(int64_t slot) noexcept;
  int64_t pop_free();
  size_t row(int64_t slot) const;

  size_t dimension_;
  size_t top_ = 0;
  // As long as the largest slot that was ever reserved.
  Vec<int64_t> keys_, arrival_;
  Vec<float> vectors_;
  FlatMap<int64_t, int64_t> slot_of_;
  Vec<int64_t> free_;  // a heap, the lowest first
  int64_t next_arrival_ = 0, next_id_ = 0;
  int64_t version_ = 0;

  Times kind_ = Times::kNone;
  Vec<int64_t> times_;  // as long as keys_, if there are times
  std::optional<int64_t> latest_;

  struct Age {
    int64_t time, arrival, slot;
  };
  static bool later(const Age& a, const Age& b);
  bool stale(const Age& age) const { return arrival(age.slot) != age.arrival; }
  int64_t time(size_t slot) const { return kind_ == Times::kNone ? 0 : times_[slot]; }
  void note_time(size_t slot) noexcept;
  void make_ages();
  Vec<Age> ages_;
  bool knows_ages_ = false;

  struct Pending {
    Vec<int64_t> slots, arrivals;
    int64_t next_arrival = 0, next_id = 0;
    bool there = false;  // perhaps with no slots, but counters
  };
  Pending pending_;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_POINT_TABLE_H_
