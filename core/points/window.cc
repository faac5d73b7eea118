#include "core/points/window.h"

#include <cmath>
#include <utility>

namespace dynhac {

namespace {

// A sum of doubles without rounding error, as terms != 0 of which none overlaps another, the
// smallest first (Shewchuk, "Adaptive precision floating-point arithmetic", 1997). The largest has
// its sign.
class ExactSum {
 public:
  void add(double x) {
    size_t kept = 0;
    for (size_t i = 0; i < count_; ++i) {
      double y = terms_[i];
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const double high = x + y;
      const double low = std::isfinite(high) ? y - (high - x) : 0;
      if (low != 0) terms_[kept++] = low;
      x = high;
    }
    if (x != 0) terms_[kept++] = x;  // a zero would hide the sign of smaller terms
    count_ = kept;
  }

  void add(const Number& number, double sign) {
    if (const double* x = std::get_if<double>(&number)) return add(sign * *x);
    // The two halves of an int are doubles exactly.
    const int64_t value = std::get<int64_t>(number);
    add(sign * std::ldexp(static_cast<double>(value >> 32), 32));
    add(sign * static_cast<double>(value & 0xFFFFFFFF));
  }

  bool negative() const { return count_ > 0 && terms_[count_ - 1] < 0; }

 private:
  double terms_[8] = {};  // one for each addition at most
  size_t count_ = 0;
};

}  // namespace

void Window::advance(Number time) {
  if (clock_) {
    ExactSum difference;
    difference.add(*clock_, 1);
    difference.add(time, -1);
    if (!difference.negative()) return;
  }
  clock_ = time;
}

bool Window::too_old(Number time) const {
  if (!max_age_ || !clock_) return false;
  const int64_t *t = std::get_if<int64_t>(&time), *clock = std::get_if<int64_t>(&*clock_),
                *age = std::get_if<int64_t>(&*max_age_);
  if (t != nullptr && clock != nullptr && age != nullptr) {
    // The difference of two ints, the larger one first, fits an unsigned one; max_age is >= 0.
    return *clock > *t &&
           static_cast<uint64_t>(*clock) - static_cast<uint64_t>(*t) > static_cast<uint64_t>(*age);
  }
  if (std::holds_alternative<double>(time) && std::holds_alternative<double>(*clock_)) {
    return std::get<double>(time) < std::get<double>(*clock_) - to_double(*max_age_);
  }
  ExactSum left;  // until the point is too old
  left.add(time, 1);
  left.add(*max_age_, 1);
  left.add(*clock_, -1);
  return left.negative();
}

}  // namespace dynhac
