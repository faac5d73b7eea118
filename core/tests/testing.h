// A test harness in one header.
//
//   TEST(sum_is_symmetric) {
//     Random random(testing::base_seed());
//     const int64_t a = random.below(100), b = random.below(100);
//     EXPECT_EQ(sum(a, b), sum(b, a));
//   }
//
// Expectations do not end the test: they print file, line, values, and the seed of the last Random
// that the test made, and the test continues. An exception that leaves a test fails it. main.cc
// runs all tests, or those whose name contains the argument.

#ifndef DYNHAC_TESTS_TESTING_H_
#define DYNHAC_TESTS_TESTING_H_

#include <concepts>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/flat_map.h"

namespace dynhac::testing {

struct Case {
  const char* name;
  void (*run)();
};

struct State {
  std::vector<Case> cases;
  uint64_t base_seed = 1;
  bool has_seed = false;  // the running test has made a Random, with this seed:
  uint64_t seed = 0;
  int64_t failures = 0;  // of the running test
};

inline State& state() {
  static State the_state;
  return the_state;
}

// Set by --seed=; the seeds of a test start here, so that runs can try different inputs.
inline uint64_t base_seed() {
  return state().base_seed;
}

struct Registration {
  Registration(const char* name, void (*run)()) { state().cases.push_back({name, run}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  constexpr int64_t kPrinted = 10;  // of one test: a broken loop must not bury the first failure
  if (++state().failures > kPrinted) return;
  std::cout << file << ":" << line << ": " << what;
  if (state().has_seed) std::cout << "  [seed " << state().seed << "]";
  std::cout << (state().failures == kPrinted ? "\n  (further failures are counted only)\n" : "\n");
}

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

template <class A, class B>
bool equal(const A& a, const B& b) {
  if constexpr (Integer<A> && Integer<B>) {
    return std::cmp_equal(a, b);
  } else {
    return a == b;
  }
}

template <class T>
std::string show(const T& value) {
  std::ostringstream text;
  text.precision(17);
  if constexpr (requires { text << value; }) {
    text << value;
  } else if constexpr (requires { value.begin() != value.end(); }) {
    text << "{";
    for (const auto& item : value) text << " " << show(item);
    text << " }";
  } else {
    text << "(a value without <<)";
  }
  return text.str();
}

template <class A, class B>
void expect_equal(const char* file, int line, const char* text, const A& a, const B& b) {
  if (!equal(a, b)) fail(file, line, std::string(text) + ": " + show(a) + " != " + show(b));
}

}  // namespace dynhac::testing

namespace dynhac {

// The same numbers for the same seed on every machine, unlike the distributions of <random>.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix_bits(seed + 0x9E3779B97F4A7C15u)) {
    testing::state().has_seed = true;
    testing::state().seed = seed;
  }

  uint64_t next() { return mix_bits(state_ += 0x9E3779B97F4A7C15u); }
  // 0 <= result < bound; the bias is far below what a test could see.
  int64_t below(int64_t bound) { return static_cast<int64_t>(next() >> 1) % bound; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)
  bool chance(double probability) { return uniform() < probability; }

  template <class Container>
  auto& pick(Container& items) {
    return *std::next(items.begin(), below(static_cast<int64_t>(items.size())));
  }

  template <class Container>
  void shuffle(Container& items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace dynhac

#define TEST(name)                                                                   \
  static void test_##name();                                                         \
  static const ::dynhac::testing::Registration register_##name(#name, &test_##name); \
  static void test_##name()

#define EXPECT(...)                                                                          \
  do {                                                                                       \
    if (!(__VA_ARGS__)) ::dynhac::testing::fail(__FILE__, __LINE__, "false: " #__VA_ARGS__); \
  } while (false)

#define EXPECT_EQ(a, b) ::dynhac::testing::expect_equal(__FILE__, __LINE__, #a " == " #b, (a), (b))

// The statement throws an Exception (or something derived from it), and nothing else.
#define EXPECT_THROWS(Exception, ...)                                                      \
  do {                                                                                     \
    bool caught = false;                                                                   \
    try {                                                                                  \
      static_cast<void>(__VA_ARGS__);                                                      \
    } catch (const Exception&) {                                                           \
      caught = true;                                                                       \
    }                                                                                      \
    if (!caught) {                                                                         \
      ::dynhac::testing::fail(__FILE__, __LINE__, "no " #Exception " from " #__VA_ARGS__); \
    }                                                                                      \
  } while (false)

#endif  // DYNHAC_TESTS_TESTING_H_
