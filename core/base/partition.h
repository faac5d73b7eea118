// A stable partition of many records into buckets, in parallel: the first step of a sort.
//
// The input is cut into blocks. Every block counts its records by bucket; sums of these counts give
// each block its places in each bucket; then every block writes its records there. Nothing depends
// on the number of threads.

#ifndef DYNHAC_BASE_PARTITION_H_
#define DYNHAC_BASE_PARTITION_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"

namespace dynhac {

// Ranges of `keys` keys from `first` on, by high bits: about one for `per_bucket` of `count`
// records.
struct KeyRanges {
  KeyRanges(size_t keys, size_t count, size_t per_bucket, size_t first = 0) : first(first) {
    const size_t wanted =
        std::clamp<size_t>(count / Workers::range_size(per_bucket), 1, kMostBuckets);
    while ((keys >> shift) > wanted) ++shift;
    buckets = (keys >> shift) + 1;
  }
  size_t of(size_t key) const { return (key - first) >> shift; }

  static constexpr size_t kMostBuckets = 1024;
  size_t first;
  int shift = 0;
  size_t buckets = 1;
};

// Writes record(i), for every i < count, to `out` ordered by bucket_of(i), which is < buckets.
// Returns where the buckets begin, and the end. `polled` is called by the calling thread, with a
// number of records that were read.
template <class Out, class BucketOf, class Record, class Polled>
Vec<size_t> partition(Workers& workers, size_t count, size_t buckets, Out* out, BucketOf bucket_of,
                      Record record, Polled polled) {
  constexpr size_t kMostBlocks = 256, kLeast = size_t{1} << 13;
  const size_t block =
      std::max(Workers::range_size(kLeast), (count + kMostBlocks - 1) / kMostBlocks);
  const size_t blocks = (count + block - 1) / block;
  Vec<size_t> places(blocks * buckets, 0);  // of the next record, by block and bucket
  workers.run(blocks, [&](size_t b, uint32_t thread) {
    size_t* counts = &places[b * buckets];
    const size_t end = std::min(count, (b + 1) * block);
    for (size_t i = b * block; i < end; ++i) ++counts[bucket_of(i)];
    if (thread == 0) polled(block);
  });
  Vec<size_t> begins(buckets + 1);
  size_t at = 0;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    begins[bucket] = at;
    for (size_t b = 0; b < blocks; ++b) {
      const size_t here = places[b * buckets + bucket];
      places[b * buckets + bucket] = at;
      at += here;
    }
  }
  begins[buckets] = at;
  workers.run(blocks, [&](size_t b, uint32_t thread) {
    size_t* place = &places[b * buckets];
    const size_t end = std::min(count, (b + 1) * block);
    for (size_t i = b * block; i < end; ++i) out[place[bucket_of(i)]++] = record(i);
    if (thread == 0) polled(block);
  });
  return begins;
}

// Appends the lists to `all`, one after the other.
template <class T, class Lists>
void append_all(Workers& workers, Vec<T>& all, const Lists& lists) {
  if (lists.size() == 0) return;
  Vec<size_t> begins(lists.size());
  size_t size = all.size();
  for (size_t i = 0; i < lists.size(); ++i) {
    begins[i] = size;
    size += lists[i].size();
  }
  if (size == all.size()) return;
  all.resize(size);
  workers.run(lists.size(), [&](size_t i, uint32_t) {
    std::copy(lists[i].begin(), lists[i].end(), all.begin() + begins[i]);
  });
}

}  // namespace dynhac

#endif  // DYNHAC_BASE_PARTITION_H_
