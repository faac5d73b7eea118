// A batch of changes in the user's ids, and the reasons for which one may be rejected.

#ifndef DYNHAC_HIERARCHY_BATCH_H_
#define DYNHAC_HIERARCHY_BATCH_H_

#include <cmath>
#include <cstdint>
#include <exception>
#include <span>

#include "core/hierarchy/types.h"

namespace dynhac {

// Removals come first: an id in both `remove` and `add` is replaced. An edge sets the weight of its
// pair, and may be listed in either direction or both.
struct Batch {
  std::span<const int64_t> remove, add;
  std::span<const int64_t> remove_u, remove_v;
  std::span<const int64_t> u, v;
  std::span<const double> w;

  bool empty() const { return remove.empty() && add.empty() && remove_u.empty() && u.empty(); }
};

// Thrown before anything has changed. `kind` is one of the words below; `index` tells where.
class BatchError : public std::exception {
 public:
  BatchError(const char* kind, size_t index, size_t other = 0)
      : kind(kind), index(static_cast<int64_t>(index)), other(static_cast<int64_t>(other)) {}
  const char* what() const noexcept override { return kind; }

  const char* kind;  // unknown_remove, duplicate_remove, present, duplicate_add, too_many,
                     // unknown_edge, unknown_edge_end, unknown_endpoint, self_loop, weight_invalid,
                     // weight_underflow, weight_overflow, weight_conflict, total_overflow
  int64_t index;     // in the array that the kind is about
  int64_t other;     // duplicates and conflicts: the earlier index; unknown ends: 0 for u, 1 for v
};

// A weight in units of the resolution, rounded to the nearest. `index` is its place in a batch, for
// the error if there is no such weight.
inline Weight fixed_point(double weight, double resolution, size_t index) {
  constexpr double kBound = 0x1p62;
  const double scaled = weight / resolution;
  if (!(weight > 0) || !std::isfinite(weight)) throw BatchError("weight_invalid", index);
  if (!(scaled < kBound)) throw BatchError("weight_overflow", index);
  auto w = static_cast<Weight>(scaled);
  const double rest = scaled - static_cast<double>(w);  // scaled + 0.5 would itself be rounded
  w += rest >= 0.5;
  if (w < 1) throw BatchError("weight_underflow", index);
  return w;
}

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_BATCH_H_
