// Loops of kernels that the compiler vectorises, for whatever instructions the function that they
// are inlined into may use.

#ifndef DYNHAC_NEIGHBORS_KERNEL_LOOPS_H_
#define DYNHAC_NEIGHBORS_KERNEL_LOOPS_H_

#include <cstddef>
#include <cstdint>

#include "core/neighbors/kernels.h"

#if defined(_MSC_VER)
#define DYNHAC_INLINE __forceinline
#define DYNHAC_INLINE_LAMBDA
#else
#define DYNHAC_INLINE inline __attribute__((always_inline))
#define DYNHAC_INLINE_LAMBDA __attribute__((always_inline))
#endif

namespace dynhac::loops {

inline constexpr size_t kSums = 8;

// See Kernel::squares.
template <class Term>
DYNHAC_INLINE double sum(size_t count, Term term) {
  double sums[kSums] = {}, total = 0;
  if (count <= kSums) {
    for (size_t j = 0; j < count; ++j) total += term(j);
    return total;
  }
  for (size_t i = 0; i < kSums; ++i) sums[i] = term(i);
  size_t j = kSums;
  for (; j + kSums <= count; j += kSums) {
    for (size_t i = 0; i < kSums; ++i) sums[i] += term(j + i);
  }
  total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; j < count; ++j) total += term(j);
  return total;
}

DYNHAC_INLINE double squares(const float* a, const float* b, size_t count) {
  return sum(count, [=](size_t j) DYNHAC_INLINE_LAMBDA {
    const double side = double{a[j]} - double{b[j]};
    return side * side;
  });
}

DYNHAC_INLINE double products(const float* a, const float* b, size_t count) {
  return sum(count, [=](size_t j) DYNHAC_INLINE_LAMBDA { return double{a[j]} * double{b[j]}; });
}

DYNHAC_INLINE ScaledSums scaled(const float* a, const float* b, double length, size_t count) {
  float s[kMostSummed];
  for (size_t j = 0; j < count; ++j) s[j] = static_cast<float>(b[j] / length);
  return {products(a, s, count), products(s, s, count)};
}

DYNHAC_INLINE void hits(const int32_t* dots, const BlockTerms* terms, size_t n_blocks,
                        const QueryTerms& query, float limit, uint16_t* hits) {
  for (size_t block = 0; block < n_blocks; ++block) {
    const BlockTerms& t = terms[block];
    float lower[kLanes];
    for (size_t i = 0; i < kLanes; ++i) {
      const float product = static_cast<float>(dots[block * kLanes + i]) * t.scale[i] * query.scale;
      const float error = t.error[i] * query.length + t.length[i] * query.error;
      lower[i] = (t.low[i] - product) - error;
    }
    unsigned bits = 0;
    for (size_t i = 0; i < kLanes; ++i) bits |= static_cast<unsigned>(!(lower[i] > limit)) << i;
    hits[block] = static_cast<uint16_t>(bits);
  }
}

}  // namespace dynhac::loops

#endif  // DYNHAC_NEIGHBORS_KERNEL_LOOPS_H_
