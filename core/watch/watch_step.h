// What one update did to the clusters of a watch.

#ifndef DYNHAC_WATCH_WATCH_STEP_H_
#define DYNHAC_WATCH_WATCH_STEP_H_

#include <cstdint>
#include <optional>

#include "core/base/memory.h"
#include "core/base/number.h"

namespace dynhac {

inline constexpr int64_t kNoCluster = -1;

// When an update was made: the version of the model that it led to, and the clock of the model.
struct Moment {
  int64_t version = 0;
  std::optional<Number> clock;  // nullopt without timestamps, and for the first step of a watch
};

struct WatchStep {
  struct Size {
    int64_t cluster, before, now;  // sizes; 0: does not exist
  };
  struct Move {
    int64_t from, to;
    size_t end;  // end of its keys; they begin at the end of the move before it
  };
  Moment moment;
  Vec<Size> sizes;  // of the clusters that leaves left or joined, by id
  Vec<Move> moves;  // by from, then to
  Vec<int64_t> keys;

  bool empty() const { return sizes.empty() && moves.empty(); }
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_WATCH_STEP_H_
