// An ordered set of numbers, kept as a list of sorted chunks: an update moves the numbers of one
// chunk instead of all larger numbers.
//
// Invariants: no chunk is empty or holds more than kChunk; two in a row hold more than kChunk / 2
// together, unless memory to join them was short; all numbers of a chunk are smaller than those of
// the next.

#ifndef DYNHAC_NEIGHBORS_SORTED_CHUNKS_H_
#define DYNHAC_NEIGHBORS_SORTED_CHUNKS_H_

#include <algorithm>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "core/base/memory.h"

namespace dynhac {

class SortedChunks {
 public:
  static constexpr size_t kChunk = 512;

  // In ascending order.
  std::span<const Vec<uint32_t>> chunks() const { return chunks_; }

  // The number must not be in the set. All or nothing.
  void insert(uint32_t number) {
    if (chunks_.empty()) return fill({number});
    auto at = chunk_of(number) - chunks_.begin();
    if (chunks_[static_cast<size_t>(at)].size() == kChunk) {
      const Chunk full = chunks_.begin() + at;
      const Chunk upper = chunks_.insert(full + 1, {full->begin() + kChunk / 2, full->end()});
      (upper - 1)->resize(kChunk / 2);
      if (number > upper->front()) ++at;
    }
    Vec<uint32_t>& chunk = chunks_[static_cast<size_t>(at)];
    chunk.insert(std::lower_bound(chunk.begin(), chunk.end(), number), number);
  }

  // The number must be in the set.
  void erase(uint32_t number) noexcept {
    const auto chunk = chunk_of(number);
    chunk->erase(std::lower_bound(chunk->begin(), chunk->end(), number));
    if (chunk->empty()) {
      chunks_.erase(chunk);
    } else if (chunk != chunks_.begin() && few(*(chunk - 1), *chunk)) {
      join(chunk - 1);
    } else if (chunk + 1 != chunks_.end() && few(*chunk, *(chunk + 1))) {
      join(chunk);
    }
  }

  // Fills an empty set; the numbers may be in any order.
  void fill(Vec<uint32_t> numbers) {
    std::sort(numbers.begin(), numbers.end());
    for (size_t begin = 0; begin < numbers.size(); begin += kChunk / 2) {
      const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(begin);
      const size_t count = std::min(kChunk / 2, numbers.size() - begin);
      chunks_.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    }
  }

 private:
  using Chunk = Vec<Vec<uint32_t>>::iterator;

  // The chunk that a number is in or belongs to: the last one that starts below it, or the first of
  // all.
  Chunk chunk_of(uint32_t number) {
    const auto above = [](uint32_t n, const Vec<uint32_t>& chunk) { return n < chunk.front(); };
    return std::upper_bound(chunks_.begin() + 1, chunks_.end(), number, above) - 1;
  }

  static bool few(const Vec<uint32_t>& a, const Vec<uint32_t>& b) {
    return a.size() + b.size() <= kChunk / 2;
  }

  void join(Chunk chunk) noexcept {
    try {
      chunk->insert(chunk->end(), (chunk + 1)->begin(), (chunk + 1)->end());
    } catch (const std::bad_alloc&) {
      return;
    }
    chunks_.erase(chunk + 1);
  }

  Vec<Vec<uint32_t>> chunks_;
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_SORTED_CHUNKS_H_
