// The points of a model by slot: their keys, vectors, timestamps and order of arrival.
//
// A slot is a row of every array here, and the number under which a neighbour index holds the
// point. New points take the lowest slots that were free before their batch. So the slots, which
// break ties between neighbours at equal distances, follow from the batches alone.
//
// New points come in two steps. `reserve` gives them slots and writes their vectors; these points
// are *pending* and no reader sees them. Then `commit` makes them points of the table, or
// `give_back` frees their slots. One batch at a time is pending.
//
// Invariants:
// - A slot is in use if and only if its arrival number is >= 0. Slots from top() on were never
// used.
// - slot_of_ has the key of every slot in use, and no other.
// - free_ is a heap of the slots below top() that are neither in use nor pending.
// - ages_, once the oldest points have been asked for, is a heap with an entry for every slot in
// use,
//   the oldest first. Its other entries are *stale*: their slot has another arrival number by now.
// - equals_, once equal points have been asked for, links the points that there will be after the
//   commit: those in use that do not leave, and the pending ones.
//
// Points are ordered by (timestamp, arrival). A timestamp is stored as its *order*, an int64 that
// compares as the timestamp does: an int is its own order, for a float see order_of. The timestamps
// of a table are of one kind; ints become floats when the first float comes (`recode`).

#ifndef DYNHAC_POINTS_POINT_TABLE_H_
#define DYNHAC_POINTS_POINT_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/neighbors/rows.h"
#include "core/points/equal_points.h"
#include "core/points/window.h"

namespace dynhac {

enum class TimeKind : uint8_t { kNone, kInts, kFloats, kDates };  // dates are int nanoseconds

int64_t order_of(double time);  // finite; -0.0 has the order of 0.0
double time_of(int64_t order);  // the inverse of order_of
Number time_from(TimeKind kind, int64_t order);

// The vectors of pending points can be read, too, and those of points that leave until the commit.
class PointTable : public VectorRows {
 public:
  // Everything that is saved: columns with an entry, or a row, for every slot below top.
  struct State {
    Vec<int64_t> keys, arrival;  // arrival is kFree where a slot is free
    Vec<float> vectors;
    TimeKind kind = TimeKind::kNone;
    Vec<int64_t> times;  // orders; empty without timestamps
    int64_t next_arrival = 0, next_id = 0;
  };

  // New points: a row of `vectors` each, the order of their timestamps if the table has timestamps,
  // and their arrival numbers, ascending. The commit sets the counters to the values given here.
  struct NewPoints {
    std::span<const float> vectors;
    std::span<const int64_t> times, arrivals;
    int64_t next_arrival, next_id;
  };

  static constexpr int64_t kFree = -1;

  explicit PointTable(size_t dimension, TimeKind kind = TimeKind::kNone)
      : dimension_(dimension), kind_(kind) {}
  // Throws std::invalid_argument if it is not the state of a table.
  PointTable(size_t dimension, State state);

  size_t dimension() const { return dimension_; }
  size_t size() const { return slot_of_.size(); }
  size_t top() const { return top_; }
  int64_t next_arrival() const { return next_arrival_; }
  int64_t next_id() const { return next_id_; }  // larger than any int id that was ever used
  size_t bytes() const;

  Vec<int64_t> used() const;      // slots in use, ascending
  Vec<int64_t> in_order() const;  // slots in use, by arrival

  // kFree for slots that are not in use or do not exist.
  int64_t arrival(int64_t slot) const;
  // Of points in use or pending. Throws std::out_of_range for a slot that does not exist.
  Vec<int64_t> keys_of(std::span<const int64_t> slots) const;
  void to_keys(std::span<int64_t> slots, Workers& workers) const;  // in place
  Vec<float> vectors_of(std::span<const int64_t> slots) const;
  const float* row(int64_t slot) const override {
    return vectors_.data() + static_cast<size_t>(slot) * dimension_;
  }
  int64_t find(int64_t key) const;  // its slot; -1 if there is none
  // Free slots are zero: tables that hold the same have the same state.
  State state() const;
  Vec<int64_t> saved_keys() const;
  Vec<int64_t> saved_arrival() const;
  Vec<float> saved_vectors() const;
  Vec<int64_t> saved_times() const;  // empty without timestamps

  TimeKind kind() const { return kind_; }
  int64_t time(int64_t slot) const { return kind_ == TimeKind::kNone ? 0 : times_[at(slot)]; }
  // Whether every timestamp in use is equal to a float.
  bool exact_as_floats() const;
  // Turns ints into floats, which must be exact, or such floats back into ints.
  void recode(TimeKind kind) noexcept;
  // The slots of the `count` oldest points and of all that are too old, the oldest first, without
  // those in `excluded`.
  Vec<int64_t> oldest(size_t count, const Window& window, std::span<const int64_t> excluded);

  // Returns the slots of new points, ascending, in the order of their vectors. `leaving` are the
  // slots that the commit will free. All or nothing.
  Vec<int64_t> reserve(const NewPoints& points, std::span<const int64_t> leaving);
  // Of points that there will be after the commit: whether two have the same vector, and the
  // `count` points with the vector of one that arrived next to it; see EqualPoints::around.
  bool equal(int64_t a, int64_t b) const;
  Vec<int64_t> equals_around(int64_t slot, size_t count);
  // Sets the keys of the pending points. Throws std::invalid_argument if there are not as many.
  void name(std::span<const int64_t> keys);
  void give_back() noexcept;
  // Frees the slots that leave and puts the pending points in use. Their keys must be new, or those
  // of points that leave; no slot may be listed twice.
  void commit(std::span<const int64_t> leaving) noexcept;

 private:
  // The values of all slots below top, `width` each, of a column of which free ones are 0.
  template <class T>
  Vec<T> saved(const Vec<T>& column, size_t width) const;
  void push_free(int64_t slot) noexcept;
  int64_t pop_free();
  size_t at(int64_t slot) const;  // throws std::out_of_range

  size_t dimension_;
  size_t top_ = 0;
  // As long as the largest slot that was ever reserved.
  Vec<int64_t> keys_, arrival_;
  Vec<float> vectors_;
  FlatMap<int64_t, int64_t> slot_of_;
  Vec<int64_t> free_;  // a heap, the lowest first
  int64_t next_arrival_ = 0, next_id_ = 0;

  TimeKind kind_ = TimeKind::kNone;
  Vec<int64_t> times_;  // orders, as many as keys_; empty without timestamps

  struct Age {
    int64_t time, arrival, slot;
  };
  static bool later(const Age& a, const Age& b);
  bool stale(const Age& age) const { return arrival(age.slot) != age.arrival; }
  void make_ages();
  void drop_stale_ages() noexcept;
  Vec<Age> ages_;
  bool has_ages_ = false;

  std::optional<EqualPoints> equals_;
  void link_pending() noexcept;

  struct Pending {
    Vec<int64_t> slots, arrivals;
    Vec<int64_t> leaving;  // slots that the commit will free
    int64_t next_arrival = 0, next_id = 0;
  };
  Pending pending_;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_POINT_TABLE_H_
