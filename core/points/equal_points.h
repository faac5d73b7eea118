// Points with equal vectors, in order of arrival.
//
// All points are in chains by a hash of their vector; a chain has the latest point first, so that
// points with equal vectors stand in it in reverse order of arrival, with few others between them.
//
// Changes can be undone: `relink` after `unlink`, and `unlink` after `link`, in reverse order.
// Nothing here owns vectors. Calls that need them take those of all slots, one row each. Values are
// compared as numbers: 0.0 and -0.0 are equal.

#ifndef DYNHAC_POINTS_EQUAL_POINTS_H_
#define DYNHAC_POINTS_EQUAL_POINTS_H_

#include <cstdint>
#include <span>

#include "core/base/memory.h"

namespace dynhac {

class EqualPoints {
 public:
  explicit EqualPoints(size_t dimension) : dimension_(dimension) {}

  // Makes room for slots below `top`, all of them linked. `link` and `relink` need it.
  void reserve(size_t top, std::span<const float> vectors);

  void link(int64_t slot, std::span<const float> vectors) noexcept;  // the latest point
  void unlink(int64_t slot, std::span<const float> vectors) noexcept;
  void relink(int64_t slot, std::span<const float> vectors) noexcept;

  // The `count` points with the same vector as `slot` that arrived last before it, the latest
  // first; if there are fewer, then also the first that arrived after it. Fewer if there are not
  // as many.
  Vec<int64_t> around(int64_t slot, size_t count, std::span<const float> vectors) const;

  size_t bytes() const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  uint32_t& first(int64_t slot, std::span<const float> vectors);

  size_t dimension_;
  Vec<uint32_t> firsts_;           // of each chain; as many as a power of two
  Vec<uint32_t> earlier_, later_;  // next and previous in the chain, by slot
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_EQUAL_POINTS_H_
