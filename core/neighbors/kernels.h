// The inner loops of searches, for the instructions that the processor has.
//
// A *code* is a vector of small whole numbers, one byte per dimension (see codes.h), filled up with
// zeros to a *width* that is a multiple of 4. Stored codes come in *blocks* of kLanes. In a block,
// bytes 4j to 4j + 3 of all its codes follow each other, for j = 0, 1, ...: one register has four
// bytes of each of 16 codes. Every byte is stored plus 128, since the instructions of AVX-512 VNNI
// multiply unsigned by signed bytes.
//
// Every kernel computes the same: sums of products of codes are whole numbers; float arithmetic is
// the same operations in the same order, without fused ones. So an answer does not depend on the
// processor.

#ifndef DYNHAC_NEIGHBORS_KERNELS_H_
#define DYNHAC_NEIGHBORS_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace dynhac {

inline constexpr size_t kLanes = 16;         // codes in a block
inline constexpr size_t kQueriesAtOnce = 8;  // for which a kernel is fastest
inline constexpr size_t kMostSummed = 128;   // numbers that a kernel adds up

// What is known of the codes in a block, apart from their bytes. See codes.h.
struct BlockTerms {
  float scale[kLanes];
  float error[kLanes];
  float length[kLanes];
  float low[kLanes];
};

// The same of a query.
struct QueryTerms {
  float scale, error, length;
};

struct ScaledSums {
  double product, square;
};

struct Kernel {
  const char* name;

  // Inner products of codes: dots[(query * n_blocks + block) * kLanes + lane]. `queries` are codes,
  // of `width` bytes each, at most kQueriesAtOnce of them.
  void (*dots)(const int8_t* queries, size_t n_queries, const uint8_t* blocks, size_t n_blocks,
               size_t width, int32_t* dots);

  // For one query: hits[block] has a bit for every lane whose lower bound is not above `limit`:
  //   low - dot * scale * query.scale - (error * query.length + length * query.error)
  // A bound that is not a number is not above anything.
  void (*hits)(const int32_t* dots, const BlockTerms* terms, size_t n_blocks,
               const QueryTerms& query, float limit, uint16_t* hits);

  // Sums in double, of (a - b)^2 and of a * b, for up to kMostSummed numbers. Up to 8 are added in
  // their order; of more, eight sums, of every eighth number, are added in pairs, and pairs of
  // pairs, and then what remains after a multiple of eight, as NumPy does.
  double (*squares)(const float* a, const float* b, size_t count);
  double (*products)(const float* a, const float* b, size_t count);
  // Likewise, with s = b / length rounded to float: of a * s and of s * s.
  ScaledSums (*scaled)(const float* a, const float* b, double length, size_t count);
};

// Those that this processor can run, the fastest first; the last one is plain C++.
std::span<const Kernel> kernels();

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_KERNELS_H_
