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

template <class Term>
DYNHAC_INLINE double sum(size_t dimension, Term term) {
  double sums[kSums] = {};
  size_t j = 0;
  for (; j + kSums <= dimension; j += kSums) {
    for (size_t i = 0; i < kSums; ++i) sums[i] += term(j + i);
  }
  for (size_t i = 0; j + i < dimension; ++i) sums[i] += term(j + i);
  double total = sums[0];
  for (size_t i = 1; i < kSums; ++i) total += sums[i];
  return total;
}

DYNHAC_INLINE double squares(const float* a, const float* b, size_t dimension) {
  return sum(dimension, [=](size_t j) DYNHAC_INLINE_LAMBDA {
    const double side = double{a[j]} - double{b[j]};
    return side * side;
  });
}

DYNHAC_INLINE double products(const float* a, const float* b, size_t dimension) {
  return sum(dimension, [=](size_t j) DYNHAC_INLINE_LAMBDA { return double{a[j]} * double{b[j]}; });
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
