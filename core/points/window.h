// Which points of a model expire: those older than max_age, and the oldest beyond max_points.
//
// The clock is the latest time seen: a timestamp of a point, or a time given by the user. It never
// goes back. A point is too old if its timestamp is smaller than the clock minus max_age.
//
// Times are ints or floats, and the two are compared exactly, whatever their size. Only where time
// and clock are both floats is the difference rounded, as floats are.

#ifndef DYNHAC_POINTS_WINDOW_H_
#define DYNHAC_POINTS_WINDOW_H_

#include <cstdint>
#include <optional>

#include "core/base/number.h"

namespace dynhac {

class Window {
 public:
  Window() = default;
  Window(std::optional<int64_t> max_points, std::optional<Number> max_age)
      : max_points_(max_points), max_age_(max_age) {}

  std::optional<int64_t> max_points() const { return max_points_; }
  bool has_max_age() const { return max_age_.has_value(); }
  bool bounded() const { return max_points_ || max_age_; }

  const std::optional<Number>& clock() const { return clock_; }
  void set_clock(std::optional<Number> clock) { clock_ = clock; }
  void advance(Number time);

  bool too_old(Number time) const;

 private:
  std::optional<int64_t> max_points_;
  std::optional<Number> max_age_;
  std::optional<Number> clock_;
};

}  // namespace dynhac

#endif  // DYNHAC_POINTS_WINDOW_H_
