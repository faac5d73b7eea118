#include "core/points/equal_points.h"

#include <algorithm>
#include <bit>

#include "core/base/flat_map.h"

namespace dynhac {

uint32_t& EqualPoints::first(int64_t slot, std::span<const float> vectors) {
  const auto begin = static_cast<size_t>(slot) * dimension_;
  uint64_t hash = 0;
  for (const float value : vectors.subspan(begin, dimension_)) {
    hash = mix_bits(hash + std::bit_cast<uint32_t>(value + 0.0f));  // -0.0 + 0.0 is 0.0
  }
  return firsts_[hash & (firsts_.size() - 1)];
}

void EqualPoints::reserve(size_t top, std::span<const float> vectors) {
  if (top <= earlier_.size()) return;
  const size_t room = std::bit_ceil(top);
  Vec<uint32_t> firsts(room, kNone);
  earlier_.reserve(room);
  later_.reserve(room);
  // Nothing below can fail.
  earlier_.resize(room, kNone);
  later_.resize(room, kNone);
  firsts_.swap(firsts);
  for (uint32_t last : firsts) {  // of the old chains, from the end of each
    if (last == kNone) continue;
    while (earlier_[last] != kNone) last = earlier_[last];
    for (uint32_t slot = last; slot != kNone;) {
      const uint32_t next = later_[slot];
      link(slot, vectors);
      slot = next;
    }
  }
}

void EqualPoints::link(int64_t slot, std::span<const float> vectors) noexcept {
  uint32_t& chain = first(slot, vectors);
  const auto at = static_cast<size_t>(slot);
  earlier_[at] = chain;
  later_[at] = kNone;
  if (chain != kNone) later_[chain] = static_cast<uint32_t>(slot);
  chain = static_cast<uint32_t>(slot);
}

void EqualPoints::unlink(int64_t slot, std::span<const float> vectors) noexcept {
  const uint32_t earlier = earlier_[static_cast<size_t>(slot)];
  const uint32_t later = later_[static_cast<size_t>(slot)];
  if (earlier != kNone) later_[earlier] = later;
  (later == kNone ? first(slot, vectors) : earlier_[later]) = earlier;
}

void EqualPoints::relink(int64_t slot, std::span<const float> vectors) noexcept {
  const uint32_t earlier = earlier_[static_cast<size_t>(slot)];
  const uint32_t later = later_[static_cast<size_t>(slot)];
  if (earlier != kNone) later_[earlier] = static_cast<uint32_t>(slot);
  (later == kNone ? first(slot, vectors) : earlier_[later]) = static_cast<uint32_t>(slot);
}

Vec<int64_t> EqualPoints::around(int64_t slot, size_t count, std::span<const float> vectors) const {
  const auto vector_of = [&](size_t at) { return vectors.subspan(at * dimension_, dimension_); };
  const auto own = vector_of(static_cast<size_t>(slot));
  Vec<int64_t> found;
  found.reserve(count);
  for (const Vec<uint32_t>* next : {&earlier_, &later_}) {
    for (uint32_t at = (*next)[static_cast<size_t>(slot)]; at != kNone && found.size() < count;
         at = (*next)[at]) {
      if (std::ranges::equal(vector_of(at), own)) found.push_back(at);
    }
  }
  return found;
}

size_t EqualPoints::bytes() const {
  return (firsts_.capacity() + earlier_.capacity() + later_.capacity()) * sizeof(uint32_t);
}

}  // namespace dynhac
