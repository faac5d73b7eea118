// Which times are too old, against exact integers of 128 bits and cases made by hand.

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/points/window.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using Exact = __int128;

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t k53 = int64_t{1} << 53;

// In quarters. Doubles must be multiples of 1/4 and below 2^100 in size.
Exact quarters(const Number& number) {
  if (const double* x = std::get_if<double>(&number)) return static_cast<Exact>(4 * *x);
  return 4 * Exact{std::get<int64_t>(number)};
}

std::string shown(const Number& number) {
  return std::visit([](auto value) { return testing::show(value); }, number) +
         (std::holds_alternative<double>(number) ? " (float)" : " (int)");
}

bool both_floats(const Number& a, const Number& b) {
  return std::holds_alternative<double>(a) && std::holds_alternative<double>(b);
}

Window window_at(Number clock, Number max_age) {
  Window window(std::nullopt, max_age);
  window.set_clock(clock);
  return window;
}

// Numbers that are all multiples of 1/4: both kinds, small and large, next to each other.
Number random_number(Random& random, bool negative) {
  static const int64_t bases[] = {0, 1'000, k53, k53 / 2, int64_t{1} << 62, kLargest - 8};
  const int64_t base = bases[random.below(std::size(bases))];
  const int64_t offset = base == 0 ? random.below(8) : random.below(17) - 8;
  const int64_t sign = negative && random.chance(0.3) ? -1 : 1;
  if (random.chance(0.5)) return sign * (base + offset);
  double x = static_cast<double>(base) + 0.25 * static_cast<double>(offset);
  if (random.chance(0.1)) x *= 0x1p30;
  return static_cast<double>(sign) * x;
}

TEST(window_ages_of_random_numbers) {
  Random random(testing::base_seed());
  for (int round = 0; round < 200'000; ++round) {
    const Number clock = random_number(random, true), age = random_number(random, false);
    Number time = random_number(random, true);
    if (random.chance(0.5)) {  // near the limit
      const Exact limit = (quarters(clock) - quarters(age)) / 4 + random.below(5) - 2;
      if (Exact{kSmallest} <= limit && limit <= Exact{kLargest}) {
        time = static_cast<int64_t>(limit);
        if (random.chance(0.4)) time = static_cast<double>(static_cast<int64_t>(limit));
      }
    }
    bool expected = quarters(time) < quarters(clock) - quarters(age);
    if (both_floats(time, clock)) {  // rounded once
      const double limit =
          std::get<double>(clock) - std::visit([](auto x) { return static_cast<double>(x); }, age);
      expected = std::get<double>(time) < limit;
    }
    if (window_at(clock, age).too_old(time) != expected) {
      testing::fail(__FILE__, __LINE__,
                    "time " + shown(time) + ", clock " + shown(clock) + ", age " + shown(age) +
                        (expected ? " is" : " is not") + " too old");
    }
  }
}

TEST(window_clocks_of_random_numbers) {
  Random random(testing::base_seed());
  for (int round = 0; round < 2'000; ++round) {
    Window window(5, std::nullopt);
    EXPECT(!window.clock());
    Number latest = random_number(random, true);
    window.advance(latest);
    for (int i = 0; i < 20; ++i) {
      const Number time = random_number(random, true);
      window.advance(time);
      if (quarters(time) > quarters(latest)) latest = time;
      EXPECT(*window.clock() == latest);  // also of the same type: equal times change nothing
    }
  }
}

TEST(window_ages_of_numbers_that_floats_cannot_hold) {
  struct Case {
    Number time, clock, age;
    bool too_old;
  };
  const auto n = [](auto x) { return Number(x); };
  const int64_t now = 1'700'000'000'000'000'001;  // nanoseconds
  const auto now_float = static_cast<double>(now);
  const auto just_before = static_cast<int64_t>(now_float) - 1;
  const Case cases[] = {
      // 2^53 + 1 is no float.
      {n(k53), n(k53 + 1), n(int64_t{0}), true},
      {n(k53 + 1), n(k53 + 1), n(int64_t{0}), false},
      {n(0x1p53), n(k53 + 1), n(int64_t{0}), true},
      {n(0x1p53), n(k53 + 1), n(int64_t{1}), false},
      {n(0x1p53), n(k53 + 1), n(0.5), true},
      {n(k53 + 1), n(0x1p53), n(int64_t{0}), false},
      {n(k53 - 1), n(0x1p53), n(int64_t{0}), true},
      // The age cancels most of the clock, and what is left decides.
      {n(int64_t{-1}), n(0x1p60), n(0x1p60), true},
      {n(int64_t{0}), n(0x1p60), n(0x1p60), false},
      {n(int64_t{1}), n(0x1p60), n(0x1p60), false},
      {n(int64_t{-1}), n(1e300), n(1e300), true},
      {n(int64_t{-1}), n(int64_t{1} << 60), n(0x1p60), true},
      {n(-0.25), n(int64_t{1} << 60), n(0x1p60), true},
      {n(-5e-324), n(int64_t{1} << 60), n(int64_t{1} << 60), true},
      {n(5e-324), n(int64_t{1} << 60), n(int64_t{1} << 60), false},
      {n(just_before), n(now_float), n(int64_t{0}), true},
      {n(just_before), n(now_float), n(0.5), true},
      {n(just_before), n(now_float), n(int64_t{1}), false},
      // The extremes of int64: differences of up to 2^64.
      {n(kSmallest), n(kLargest), n(kLargest), true},
      {n(kSmallest), n(kLargest), n(0x1p64), false},
      {n(kSmallest), n(kLargest), n(std::nextafter(0x1p64, 0)), true},
      {n(kLargest), n(kSmallest), n(int64_t{0}), false},
      {n(int64_t{-1}), n(kLargest), n(kLargest), true},
      {n(int64_t{0}), n(kLargest), n(kLargest), false},
      {n(-0x1p63), n(kSmallest), n(int64_t{0}), false},
      {n(-0x1p63), n(kSmallest + 1), n(int64_t{0}), true},
      {n(0x1p63), n(kLargest), n(int64_t{0}), false},
      {n(kLargest), n(0x1p63), n(int64_t{0}), true},
      {n(kLargest), n(0x1p63), n(int64_t{1}), false},
      // Sums that overflow.
      {n(1.7e308), n(kLargest), n(1.7e308), false},
      {n(-1.7e308), n(kLargest), n(1.7e308), true},
      {n(-1.7e308), n(int64_t{0}), n(1.7e308), false},
      {n(int64_t{0}), n(1.7e308), n(1.7e308), false},
      {n(int64_t{-1}), n(1.7e308), n(1.7e308), true},
      {n(kLargest), n(-1.7e308), n(1.7e308), false},
      {n(kSmallest), n(1.7e308), n(int64_t{0}), true},
      {n(-1.7e308), n(1.7e308), n(1.7e308), true},
      {n(-1.7e308), n(-1.7e308), n(1.7e308), false},
      {n(1.7e308), n(-1.7e308), n(1.7e308), false},
      {n(-1.7e308), n(1.7e308), n(int64_t{5}), true},
      // Fractions.
      {n(0.7), n(int64_t{1}), n(0.3), true},  // the float 0.3 is below 0.3, as 0.7 is below 0.7
      {n(0.75), n(int64_t{1}), n(0.25), false},
      {n(std::nextafter(0.75, 0)), n(int64_t{1}), n(0.25), true},
      {n(int64_t{2}), n(2.5), n(0.5), false},
      {n(int64_t{2}), n(std::nextafter(2.5, 3)), n(0.5), true},
      {n(int64_t{-3}), n(-2.5), n(0.25), true},
      // Only floats: the difference is rounded, as in float arithmetic.
      {n(0.7), n(1.0), n(0.3), 0.7 < 1.0 - 0.3},
      {n(-1.0), n(0x1p60), n(0x1p60), true},
      {n(0x1p53), n(0x1p53 + 2), n(int64_t{1}), false},
  };
  for (const Case& c : cases) {
    if (window_at(c.clock, c.age).too_old(c.time) == c.too_old) continue;
    testing::fail(__FILE__, __LINE__,
                  "time " + shown(c.time) + ", clock " + shown(c.clock) + ", age " + shown(c.age));
  }
}

TEST(window_clock_never_goes_back) {
  // In ascending order.
  const Number times[] = {-1.7e308, kSmallest,    kSmallest + 1, -k53 - 1,   -0x1p53, -0.5,
                          -5e-324,  int64_t{0},   5e-324,        int64_t{1}, 1.5,     0x1p53,
                          k53 + 1,  kLargest - 1, kLargest,      0x1p63,     1e300,   1.7e308};
  for (size_t i = 0; i < std::size(times); ++i) {
    for (size_t j = 0; j < std::size(times); ++j) {
      Window window;
      window.advance(times[i]);
      window.advance(times[j]);
      EXPECT(*window.clock() == times[std::max(i, j)]);
    }
  }
  Window window;
  window.advance(int64_t{2});
  window.advance(2.0);  // equal
  EXPECT(std::holds_alternative<int64_t>(*window.clock()));
  window.set_clock(std::nullopt);
  EXPECT(!window.clock());
}

TEST(window_without_age_or_clock) {
  Window none, number(5, std::nullopt), age(std::nullopt, Number(1.5)), both(0, Number(int64_t{0}));
  EXPECT(!none.bounded() && number.bounded() && age.bounded() && both.bounded());
  EXPECT(!none.has_max_age() && !number.has_max_age() && age.has_max_age());
  EXPECT(number.max_points() == 5 && both.max_points() == 0 && !age.max_points());
  EXPECT(!age.too_old(kSmallest));  // there is no clock yet
  none.advance(1.7e308);
  EXPECT(!none.too_old(kSmallest));
  EXPECT(!none.too_old(-1.7e308));
}

}  // namespace
}  // namespace dynhac
