#include "core/neighbors/kernels.h"

#include "core/base/memory.h"
#include "core/neighbors/kernel_loops.h"
#include "core/neighbors/kernel_sets.h"

namespace dynhac {
namespace {

void dots(const int8_t* queries, size_t n_queries, const uint8_t* blocks, size_t n_blocks,
          size_t width, int32_t* dots) {
  for (size_t block = 0; block < n_blocks; ++block) {
    const uint8_t* codes = blocks + block * kLanes * width;
    for (size_t query = 0; query < n_queries; ++query) {
      const int8_t* own = queries + query * width;
      int32_t sums[kLanes] = {};
      for (size_t j = 0; j < width; j += 4) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const uint8_t* four = codes + j * kLanes + lane * 4;
          for (size_t i = 0; i < 4; ++i) sums[lane] += (four[i] - 128) * own[j + i];
        }
      }
      int32_t* to = dots + (query * n_blocks + block) * kLanes;
      for (size_t lane = 0; lane < kLanes; ++lane) to[lane] = sums[lane];
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

struct Available {
  Available() {
    add_special_kernels(list);
    list.push_back({"plain", dots, hits, squares, products, scaled});
  }
  Vec<Kernel> list;
};

}  // namespace

std::span<const Kernel> kernels() {
  static const Available available;
  return available.list;
}

}  // namespace dynhac
