// What an update of points has changed so far, and how to undo it.
//
// An update changes the neighbour index, reserves slots in the table and keys for text ids, and may
// recode timestamps; then the engine takes the batch. All of it is done through a journal. Unless
// the journal is closed, which happens when the engine has taken the batch, its destructor undoes
// everything: the changes of the index in reverse order, then the rest.

#ifndef DYNHAC_POINTS_JOURNAL_H_
#define DYNHAC_POINTS_JOURNAL_H_

#include <array>
#include <cstdint>
#include <span>

#include "core/base/id_table.h"
#include "core/base/memory.h"
#include "core/neighbors/index.h"
#include "core/points/point_table.h"

namespace dynhac {

class Journal {
 public:
  // `index` is the one that the model has, nullptr if it has none; changes of another index, made
  // for this update, need no undo. `index_changed` is set when its first change begins,
  // `index_lost` if the index cannot be put back.
  Journal(PointTable& table, IdTable& ids, NeighborIndex* index, bool& index_lost,
          bool& index_changed);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  void recode(TimeKind kind) noexcept { table_.recode(kind); }
  Vec<int64_t> reserve_slots(const PointTable::NewPoints& points, std::span<const int64_t> leaving);
  Vec<int64_t> reserve_keys(const Texts& ids);

  void add(NeighborIndex& index, std::span<const int64_t> slots, std::span<const float> vectors,
           Poll* poll);
  void remove(NeighborIndex& index, std::span<const int64_t> slots, Poll* poll);

  void close() noexcept { open_ = false; }

 private:
  struct Step {
    bool added;
    std::span<const int64_t> slots;  // which outlive the journal
  };
  template <class Call>
  void change(NeighborIndex& index, const Step& step, Call call);
  // Whether a failed change was made, which the size of the index tells.
  bool has_changed() noexcept;
  void undo_index() noexcept;

  PointTable& table_;
  IdTable& ids_;
  NeighborIndex* const index_;
  bool& index_lost_;
  bool& index_changed_;
  size_t index_size_;  // how many points the index holds, as those of the table at first
  const TimeKind kind_before_;
  std::array<Step, 2> steps_;  // that the index has made: a removal and an addition at most
  size_t n_steps_ = 0;
  bool open_ = true;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_JOURNAL_H_
