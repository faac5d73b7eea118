// Random and adversarial vectors, to test neighbour indexes.

#ifndef DYNHAC_TESTS_VECTOR_SHAPES_H_
#define DYNHAC_TESTS_VECTOR_SHAPES_H_

#include <cmath>
#include <string>
#include <vector>

#include "core/tests/testing.h"

namespace dynhac::testing {

using Vector = std::vector<float>;

enum class Shape {
  kSpread,      // around the origin
  kPositive,    // with a common offset
  kFarAway,     // a small cloud far from the origin
  kLattice,     // many equal distances, and equal vectors
  kNearTies,    // the same vector, but for the last bits
  kZeros,       // mostly zeros, whole vectors too
  kHuge,        // up to 1e38
  kTiny,        // around 1e-38, subnormal too
  kMagnitudes,  // from 1e-40 to 1e38
  kScaled,      // few directions, all lengths
  kConstant,    // all columns but one are constant
  kSparks,      // one number is far larger than the others
  kCount,
};

inline Vector random_vector(Random& random, Shape shape, size_t d) {
  Vector x(d);
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random.uniform();
    return sum;
  };
  switch (shape) {
    case Shape::kSpread:
      for (float& v : x) v = static_cast<float>(normal());
      break;
    case Shape::kPositive:
      for (size_t j = 0; j < d; ++j) {
        x[j] = static_cast<float>(10 + static_cast<double>(j % 7) + normal());
      }
      break;
    case Shape::kFarAway:
      for (float& v : x) v = static_cast<float>(1e6 + normal());
      break;
    case Shape::kLattice:
      for (float& v : x) v = static_cast<float>(random.below(3) - 1);
      break;
    case Shape::kNearTies:
      for (size_t j = 0; j < d; ++j) {
        x[j] = 0.3f + static_cast<float>(j % 5);
        if (random.chance(0.2)) x[j] = std::nextafter(x[j], random.chance(0.5) ? 9.0f : -9.0f);
      }
      break;
    case Shape::kZeros:
      if (random.chance(0.3)) break;
      x[random.next() % d] = random.chance(0.2) ? -0.0f : static_cast<float>(normal());
      break;
    case Shape::kHuge:
      for (float& v : x) v = static_cast<float>((random.uniform() - 0.5) * 6e38);
      break;
    case Shape::kTiny:
      for (float& v : x) v = static_cast<float>(normal() * 1e-38);
      break;
    case Shape::kMagnitudes: {
      const double size = std::pow(10.0, random.uniform() * 77 - 40);
      for (float& v : x) v = static_cast<float>(normal() * size / 7);
      break;
    }
    case Shape::kScaled: {
      const double size = std::pow(2.0, static_cast<double>(random.below(9)) * 1.3);
      const int64_t direction = random.below(3);
      for (size_t j = 0; j < d; ++j) {
        const double part = std::sin(static_cast<double>(j + 1) * static_cast<double>(direction));
        x[j] = static_cast<float>(size * part);
      }
      break;
    }
    case Shape::kConstant:
      for (size_t j = 0; j < d; ++j) x[j] = static_cast<float>(j % 3);
      x[d / 2] = static_cast<float>(normal());
      break;
    default:
      for (float& v : x) v = static_cast<float>(normal() * 1e-3);
      x[random.next() % d] = static_cast<float>(normal() * 1e4);
  }
  return x;
}

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_VECTOR_SHAPES_H_
