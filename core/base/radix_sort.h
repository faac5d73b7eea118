// A sort of many small records by an integer key, without comparisons.
//
// By digits, the lowest first, without those in which all keys agree.

#ifndef DYNHAC_BASE_RADIX_SORT_H_
#define DYNHAC_BASE_RADIX_SORT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/base/buffer.h"

namespace dynhac {

// key(record) is a uint64_t. Records with equal keys are in any order. `other` is a buffer.
template <class T, class Key>
void radix_sort(std::span<T> records, Buffer<T>& other, Key key) {
  constexpr size_t kFew = 64;  // records, that are sorted by comparisons
  constexpr int kBits = 8;
  if (records.size() <= kFew) {
    std::sort(records.begin(), records.end(),
              [&](const T& x, const T& y) { return key(x) < key(y); });
    return;
  }
  uint64_t all = ~uint64_t{0}, any = 0;  // bits that are set in all keys, and in any
  for (const T& record : records) {
    all &= key(record);
    any |= key(record);
  }
  other.renew(records.size());
  T *from = records.data(), *to = other.data();
  for (int shift = 0; shift < 64; shift += kBits) {
    constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
    if (((all ^ any) >> shift & kMask) == 0) continue;
    std::array<size_t, size_t{1} << kBits> place{};
    for (size_t i = 0; i < records.size(); ++i) ++place[key(from[i]) >> shift & kMask];
    size_t at = 0;
    for (size_t& count : place) at += std::exchange(count, at);
    for (size_t i = 0; i < records.size(); ++i)
      to[place[key(from[i]) >> shift & kMask]++] = from[i];
    std::swap(from, to);
  }
  if (from != records.data()) std::copy(from, from + records.size(), records.data());
}

}  // namespace dynhac

#endif  // DYNHAC_BASE_RADIX_SORT_H_
