// Kernels for NEON, which every 64-bit ARM processor has.

#include "core/neighbors/kernel_sets.h"

#ifdef DYNHAC_KERNELS_NEON

#include <arm_neon.h>

#include <cstring>

#include "core/neighbors/kernel_loops.h"

namespace dynhac {
namespace {

// One block. A quarter of it has four bytes of each of four codes; the products of eight bytes, as
// 16-bit numbers, are added up in pairs.
template <size_t Queries>
inline void tile(const int8_t* queries, const uint8_t* codes, size_t width, size_t stride,
                 int32_t* dots) {
  const uint8x16_t offset = vdupq_n_u8(128);
  int32x4_t sums[Queries][4];
  for (size_t q = 0; q < Queries; ++q) {
    for (size_t quarter = 0; quarter < 4; ++quarter) sums[q][quarter] = vdupq_n_s32(0);
  }
  for (size_t j = 0; j < width; j += 4) {
    for (size_t quarter = 0; quarter < 4; ++quarter) {
      const uint8x16_t stored = vld1q_u8(codes + j * kLanes + quarter * 16);
      const int8x16_t x = vreinterpretq_s8_u8(veorq_u8(stored, offset));
      for (size_t q = 0; q < Queries; ++q) {
        int32_t word;
        std::memcpy(&word, queries + q * width + j, 4);
        const int8x16_t own = vreinterpretq_s8_s32(vdupq_n_s32(word));
        const int32x4_t first =
            vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(own)));  // two sums for each code
        const int32x4_t second = vpaddlq_s16(vmull_s8(vget_high_s8(x), vget_high_s8(own)));
        sums[q][quarter] = vaddq_s32(sums[q][quarter], vpaddq_s32(first, second));
      }
    }
  }
  for (size_t q = 0; q < Queries; ++q) {
    for (size_t quarter = 0; quarter < 4; ++quarter) {
      vst1q_s32(dots + q * stride + quarter * 4, sums[q][quarter]);
    }
  }
}

void dots(const int8_t* queries, size_t n_queries, const uint8_t* blocks, size_t n_blocks,
          size_t width, int32_t* dots) {
  const size_t stride = n_blocks * kLanes;
  for (size_t block = 0; block < n_blocks; ++block) {
    const uint8_t* codes = blocks + block * kLanes * width;
    size_t q = 0;
    for (; q + 4 <= n_queries; q += 4) {
      tile<4>(queries + q * width, codes, width, stride, dots + q * stride + block * kLanes);
    }
    for (; q < n_queries; ++q) {
      tile<1>(queries + q * width, codes, width, stride, dots + q * stride + block * kLanes);
    }
  }
}

void hits(const int32_t* dots, const BlockTerms* terms, size_t n_blocks, const QueryTerms& query,
          float limit, uint16_t* hits) {
  loops::hits(dots, terms, n_blocks, query, limit, hits);
}

double squares(const float* a, const float* b, size_t count) {
  return loops::squares(a, b, count);
}

double products(const float* a, const float* b, size_t count) {
  return loops::products(a, b, count);
}

ScaledSums scaled(const float* a, const float* b, double length, size_t count) {
  return loops::scaled(a, b, length, count);
}

}  // namespace

void add_special_kernels(Vec<Kernel>& list) {
  list.push_back({"neon", dots, hits, squares, products, scaled});
}

}  // namespace dynhac

#endif  // DYNHAC_KERNELS_NEON
