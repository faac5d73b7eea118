// Which level is the last one: the one on which all that is left of a component is merged.
//
// On most graphs every level has far fewer vertices than the one below. Where only a few merges can
// be decided at a time, as on a path whose weights grow from edge to edge with epsilon = 0, there
// are as many levels as merges, and each stores all that is left: time and memory of a build would
// be quadratic. So levels are bounded: the first level that has, together with those below it, more
// than kMost vertices for every vertex of level 0 is the last one. Ordinary graphs stay far below.
//
// The last level stays the same while the number is between half of the bound and twice the bound.
// So it costs little to make it again on another level: the graph has changed as much as that.
//
// The last level depends on the updates alone, and is part of the saved state.

#ifndef DYNHAC_HIERARCHY_LAST_LEVEL_H_
#define DYNHAC_HIERARCHY_LAST_LEVEL_H_

#include <atomic>
#include <cstdint>

#include "core/hierarchy/types.h"

namespace dynhac {

namespace internal {

// Vertices of all levels together for every vertex of level 0, and how many there may be besides.
// Tests lower them.
inline std::atomic<uint64_t> most_vertices{32}, spare_vertices{uint64_t{1} << 14};

}  // namespace internal

struct LevelKind {
  bool last = false;
  bool anew = false;  // it was of the other kind before: all its groups must be run again
};

class LastLevel {
 public:
  uint32_t index() const { return index_; }  // kNone: there is none
  void set(uint32_t index) { index_ = index; }

  void begin() { before_ = index_; }
  void rollback() { index_ = before_; }

  // To be called for level after level. `points`: the vertices of level 0; `vertices`: those of all
  // levels up to `level`.
  LevelKind next(uint32_t level, uint64_t points, uint64_t vertices) {
    const uint64_t bound = internal::most_vertices.load(std::memory_order_relaxed) * points +
                           internal::spare_vertices.load(std::memory_order_relaxed);
    if (level < index_) {
      if (vertices <= (index_ == kNone ? bound : 2 * bound)) return {};
      index_ = level;
      return {.last = true, .anew = true};
    }
    if (level > index_) return {};
    if (2 * vertices >= bound) return {.last = true};
    index_ = kNone;
    return {.anew = true};
  }

 private:
  uint32_t index_ = kNone, before_ = kNone;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_LAST_LEVEL_H_
