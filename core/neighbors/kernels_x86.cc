// Kernels for AVX-512 with VNNI, and for AVX2.
//
// Functions are compiled for their instructions by attributes; kernels() asks the processor before
// one is called.

#include "core/neighbors/kernel_sets.h"

#ifdef DYNHAC_KERNELS_X86

#include <immintrin.h>

#include <cstring>

#include "core/neighbors/kernel_loops.h"

#define DYNHAC_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
// Loops over registers: unrolled early, so that arrays of registers are registers.
#define DYNHAC_UNROLL _Pragma("GCC unroll 8")
#define DYNHAC_AVX2 __attribute__((target("avx2")))

namespace dynhac {
namespace {

int32_t four_bytes(const void* from) {
  int32_t word;
  std::memcpy(&word, from, 4);
  return word;
}

namespace vnni {

// With c the codes, the instruction computes <c + 128, query>. The sums start at what that is too
// large by; they may wrap around in between, but not in the end.
DYNHAC_VNNI int32_t start_of(const int8_t* query, size_t width) {
  const __m512i offset = _mm512_set1_epi8(-128);  // 128, unsigned
  __m512i sums = _mm512_setzero_si512();
  for (size_t j = 0; j < width; j += 64) {
    const __mmask64 mask = width - j < 64 ? (uint64_t{1} << (width - j)) - 1 : ~uint64_t{0};
    sums = _mm512_dpbusd_epi32(sums, offset, _mm512_maskz_loadu_epi8(mask, query + j));
  }
  uint32_t parts[kLanes], sum = 0;
  _mm512_storeu_si512(parts, sums);
  for (const uint32_t part : parts) sum -= part;
  return static_cast<int32_t>(sum);
}

template <size_t Queries, size_t Blocks>
DYNHAC_VNNI inline void tile(const int8_t* queries, const int32_t* starts, const uint8_t* codes,
                             size_t width, size_t stride, int32_t* dots) {
  __m512i sums[Queries][Blocks];
  DYNHAC_UNROLL
  for (size_t q = 0; q < Queries; ++q) {
    DYNHAC_UNROLL
    for (size_t b = 0; b < Blocks; ++b) sums[q][b] = _mm512_set1_epi32(starts[q]);
  }
  for (size_t j = 0; j < width; j += 4) {
    __m512i x[Blocks];
    DYNHAC_UNROLL
    for (size_t b = 0; b < Blocks; ++b) {
      x[b] = _mm512_loadu_si512(codes + b * kLanes * width + j * kLanes);
    }
    DYNHAC_UNROLL
    for (size_t q = 0; q < Queries; ++q) {
      const __m512i own = _mm512_set1_epi32(four_bytes(queries + q * width + j));
      DYNHAC_UNROLL
      for (size_t b = 0; b < Blocks; ++b) {
        sums[q][b] = _mm512_dpbusd_epi32(sums[q][b], x[b], own);
      }
    }
  }
  DYNHAC_UNROLL
  for (size_t q = 0; q < Queries; ++q) {
    DYNHAC_UNROLL
    for (size_t b = 0; b < Blocks; ++b) {
      _mm512_storeu_si512(dots + q * stride + b * kLanes, sums[q][b]);
    }
  }
}

template <size_t Queries, size_t Blocks>
DYNHAC_VNNI inline void all_blocks(const int8_t* queries, const int32_t* starts,
                                   const uint8_t* blocks, size_t n_blocks, size_t width,
                                   int32_t* dots) {
  const size_t stride = n_blocks * kLanes;
  size_t block = 0;
  for (; block + Blocks <= n_blocks; block += Blocks) {
    tile<Queries, Blocks>(queries, starts, blocks + block * kLanes * width, width, stride,
                          dots + block * kLanes);
  }
  for (; block < n_blocks; ++block) {
    tile<Queries, 1>(queries, starts, blocks + block * kLanes * width, width, stride,
                     dots + block * kLanes);
  }
}

DYNHAC_VNNI void dots(const int8_t* queries, size_t n_queries, const uint8_t* blocks,
                      size_t n_blocks, size_t width, int32_t* dots) {
  int32_t starts[kQueriesAtOnce];
  for (size_t q = 0; q < n_queries; ++q) starts[q] = start_of(queries + q * width, width);
  size_t q = 0;
  for (; q + 8 <= n_queries; q += 8) {
    all_blocks<8, 3>(queries + q * width, starts + q, blocks, n_blocks, width,
                     dots + q * n_blocks * kLanes);
  }
  for (; q + 4 <= n_queries; q += 4) {
    all_blocks<4, 4>(queries + q * width, starts + q, blocks, n_blocks, width,
                     dots + q * n_blocks * kLanes);
  }
  for (; q < n_queries; ++q) {
    all_blocks<1, 8>(queries + q * width, starts + q, blocks, n_blocks, width,
                     dots + q * n_blocks * kLanes);
  }
}

DYNHAC_VNNI void hits(const int32_t* dots, const BlockTerms* terms, size_t n_blocks,
                      const QueryTerms& query, float limit, uint16_t* hits) {
  const __m512 scale = _mm512_set1_ps(query.scale), length = _mm512_set1_ps(query.length),
               error = _mm512_set1_ps(query.error), most = _mm512_set1_ps(limit);
  for (size_t block = 0; block < n_blocks; ++block) {
    const BlockTerms& t = terms[block];
    // With a mask of all lanes: of the plain form, GCC 12 says that it reads an undefined register.
    const __m512 dot = _mm512_maskz_cvtepi32_ps(0xffff, _mm512_loadu_si512(dots + block * kLanes));
    const __m512 product = _mm512_mul_ps(_mm512_mul_ps(dot, _mm512_loadu_ps(t.scale)), scale);
    const __m512 errors = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(t.error), length),
                                        _mm512_mul_ps(_mm512_loadu_ps(t.length), error));
    const __m512 lower = _mm512_sub_ps(_mm512_sub_ps(_mm512_loadu_ps(t.low), product), errors);
    hits[block] = _mm512_cmp_ps_mask(lower, most, _CMP_NGT_UQ);
  }
}

DYNHAC_VNNI double squares(const float* a, const float* b, size_t count) {
  return loops::squares(a, b, count);
}

DYNHAC_VNNI double products(const float* a, const float* b, size_t count) {
  return loops::products(a, b, count);
}

DYNHAC_VNNI ScaledSums scaled(const float* a, const float* b, double length, size_t count) {
  return loops::scaled(a, b, length, count);
}

}  // namespace vnni

namespace avx2 {

// The instruction multiplies unsigned by signed bytes and adds pairs in 16 bits. With the sign of
// the codes moved to the query, a pair is at most 2 * 127^2, which fits.
template <size_t Queries>
DYNHAC_AVX2 inline void tile(const int8_t* queries, const uint8_t* codes, size_t width,
                             size_t stride, int32_t* dots) {
  const __m256i ones = _mm256_set1_epi16(1), offset = _mm256_set1_epi8(-128);
  __m256i sums[Queries][2];
  DYNHAC_UNROLL
  for (size_t q = 0; q < Queries; ++q) sums[q][0] = sums[q][1] = _mm256_setzero_si256();
  for (size_t j = 0; j < width; j += 4) {
    DYNHAC_UNROLL
    for (size_t half = 0; half < 2; ++half) {
      const auto* from = reinterpret_cast<const __m256i*>(codes + j * kLanes + half * 32);
      const __m256i x = _mm256_xor_si256(_mm256_loadu_si256(from), offset);
      const __m256i size = _mm256_abs_epi8(x);
      DYNHAC_UNROLL
      for (size_t q = 0; q < Queries; ++q) {
        const __m256i own = _mm256_set1_epi32(four_bytes(queries + q * width + j));
        const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(own, x));
        sums[q][half] = _mm256_add_epi32(sums[q][half], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
  DYNHAC_UNROLL
  for (size_t q = 0; q < Queries; ++q) {
    auto* to = reinterpret_cast<__m256i*>(dots + q * stride);
    _mm256_storeu_si256(to, sums[q][0]);
    _mm256_storeu_si256(to + 1, sums[q][1]);
  }
}

DYNHAC_AVX2 void dots(const int8_t* queries, size_t n_queries, const uint8_t* blocks,
                      size_t n_blocks, size_t width, int32_t* dots) {
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

DYNHAC_AVX2 void hits(const int32_t* dots, const BlockTerms* terms, size_t n_blocks,
                      const QueryTerms& query, float limit, uint16_t* hits) {
  const __m256 scale = _mm256_set1_ps(query.scale), length = _mm256_set1_ps(query.length),
               error = _mm256_set1_ps(query.error), most = _mm256_set1_ps(limit);
  for (size_t block = 0; block < n_blocks; ++block) {
    const BlockTerms& t = terms[block];
    int bits = 0;
    for (int at = 0; at < 16; at += 8) {
      const auto* from = reinterpret_cast<const __m256i*>(dots + block * kLanes + at);
      const __m256 dot = _mm256_cvtepi32_ps(_mm256_loadu_si256(from));
      const __m256 product =
          _mm256_mul_ps(_mm256_mul_ps(dot, _mm256_loadu_ps(t.scale + at)), scale);
      const __m256 errors = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(t.error + at), length),
                                          _mm256_mul_ps(_mm256_loadu_ps(t.length + at), error));
      const __m256 lower =
          _mm256_sub_ps(_mm256_sub_ps(_mm256_loadu_ps(t.low + at), product), errors);
      bits |= _mm256_movemask_ps(_mm256_cmp_ps(lower, most, _CMP_NGT_UQ)) << at;
    }
    hits[block] = static_cast<uint16_t>(bits);
  }
}

DYNHAC_AVX2 double squares(const float* a, const float* b, size_t count) {
  return loops::squares(a, b, count);
}

DYNHAC_AVX2 double products(const float* a, const float* b, size_t count) {
  return loops::products(a, b, count);
}

DYNHAC_AVX2 ScaledSums scaled(const float* a, const float* b, double length, size_t count) {
  return loops::scaled(a, b, length, count);
}

}  // namespace avx2
}  // namespace

void add_special_kernels(Vec<Kernel>& list) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni")) {
    list.push_back(
        {"avx512vnni", vnni::dots, vnni::hits, vnni::squares, vnni::products, vnni::scaled});
  }
  if (__builtin_cpu_supports("avx2")) {
    list.push_back({"avx2", avx2::dots, avx2::hits, avx2::squares, avx2::products, avx2::scaled});
  }
}

}  // namespace dynhac

#endif  // DYNHAC_KERNELS_X86
