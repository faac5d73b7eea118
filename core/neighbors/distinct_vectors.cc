#include "core/neighbors/distinct_vectors.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "core/base/flat_map.h"

namespace dynhac {
namespace {

[[noreturn]] void reject(int64_t slot, const std::string& why) {
  throw SlotError("slot " + std::to_string(slot) + " is " + why);
}

void require_distinct(std::span<const int64_t> slots) {
  if (slots.size() < 2) return;
  Vec<int64_t> sorted(slots.begin(), slots.end());
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) reject(*twice, "listed twice; list it once");
}

}  // namespace

void DistinctVectors::require_new(std::span<const int64_t> slots) const {
  for (const int64_t slot : slots) {
    if (slot < 0) reject(slot, "negative; slots must be >= 0");
    if (slot > kLargestSlot) {
      reject(slot, "too large; slots must be <= " + std::to_string(kLargestSlot));
    }
    if (holds(slot)) reject(slot, "held already; remove it first");
  }
  require_distinct(slots);
}

void DistinctVectors::require_held(std::span<const int64_t> slots) const {
  for (const int64_t slot : slots) {
    if (slot < 0 || !holds(slot)) reject(slot, "not held");
  }
  require_distinct(slots);
}

void DistinctVectors::reserve(std::span<const int64_t> slots) {
  int64_t top = -1;
  for (const int64_t slot : slots) top = std::max(top, slot);
  const size_t places = n_places() + slots.size();
  for (Vec<uint32_t>* column : {&first_, &pile_, &hash_, &next_}) make_room(*column, places);
  if (rows_ == nullptr) make_room(own_, places * dimension_);
  make_room(place_of_, static_cast<size_t>(top + 1));
  if (places > heads_.size()) {
    Vec<uint32_t> heads(std::bit_ceil(places), kNone);
    heads_.swap(heads);
    rehash();
  }
  if (static_cast<size_t>(top + 1) > place_of_.size()) {
    place_of_.resize(static_cast<size_t>(top + 1), kNone);
  }
}

void DistinctVectors::rehash() noexcept {
  std::ranges::fill(heads_, kNone);
  for (uint32_t place = 0; place < n_places(); ++place) {
    next_[place] = std::exchange(head(hash_[place]), place);
  }
}

uint32_t DistinctVectors::hash_of(const float* vector) const {
  // Four chains, which the processor computes at the same time.
  uint64_t hashes[4] = {1, 2, 3, 4};
  for (size_t j = 0; j < dimension_; ++j) {
    const uint64_t bits = std::bit_cast<uint32_t>(vector[j] + 0.0f);  // -0.0 + 0.0 is 0.0
    hashes[j % 4] = (hashes[j % 4] ^ bits) * 0x9E3779B97F4A7C15u;
    hashes[j % 4] ^= hashes[j % 4] >> 32;
  }
  uint64_t hash = 0;
  for (const uint64_t part : hashes) hash = mix_bits(hash + part);
  return static_cast<uint32_t>(hash);
}

uint32_t DistinctVectors::find(const float* vector, uint32_t hash) const {
  uint32_t place = heads_[hash & (heads_.size() - 1)];
  while (place != kNone &&
         (hash_[place] != hash || !std::equal(vector, vector + dimension_, row(place)))) {
    place = next_[place];
  }
  return place;
}

bool DistinctVectors::add(int64_t slot, const float* vector) {
  const auto number = static_cast<uint32_t>(slot);
  const uint32_t hash = hash_of(vector), equal = find(vector, hash);
  if (equal != kNone) {
    join(number, equal);
    place_of_[number] = equal;
    ++n_slots_;
    return false;
  }
  const auto place = static_cast<uint32_t>(n_places());
  first_.push_back(number);
  pile_.push_back(kNone);
  hash_.push_back(hash);
  next_.push_back(std::exchange(head(hash), place));
  if (rows_ == nullptr) own_.insert(own_.end(), vector, vector + dimension_);
  place_of_[number] = place;
  ++n_slots_;
  return true;
}

void DistinctVectors::join(uint32_t slot, uint32_t place) {
  if (pile_[place] != kNone) {
    piles_[pile_[place]].insert(slot);
  } else {
    if (free_piles_.empty()) {
      make_room(free_piles_, piles_.size() + 1);
      piles_.emplace_back();
      free_piles_.push_back(static_cast<uint32_t>(piles_.size() - 1));
    }
    piles_[free_piles_.back()].fill({first_[place], slot});
    pile_[place] = free_piles_.back();
    free_piles_.pop_back();
  }
  first_[place] = std::min(first_[place], slot);
}

DistinctVectors::Removed DistinctVectors::remove(int64_t slot) noexcept {
  const auto number = static_cast<uint32_t>(slot);
  const uint32_t place = std::exchange(place_of_[number], kNone);
  --n_slots_;
  if (pile_[place] == kNone) return close(place);
  SortedChunks& pile = piles_[pile_[place]];
  pile.erase(number);
  const auto chunks = pile.chunks();
  first_[place] = chunks.front().front();
  if (chunks.size() == 1 && chunks.front().size() == 1) {
    pile = SortedChunks();
    free_piles_.push_back(std::exchange(pile_[place], kNone));
  }
  return {kNone, kNone};
}

// Takes a place without slots out, and moves the last one there.
DistinctVectors::Removed DistinctVectors::close(uint32_t place) noexcept {
  const auto last = static_cast<uint32_t>(n_places() - 1);
  const auto link_to = [&](uint32_t target) -> uint32_t& {
    uint32_t* link = &head(hash_[target]);
    while (*link != target) link = &next_[*link];
    return *link;
  };
  uint32_t& link = link_to(place);
  link = next_[place];
  if (place != last) {
    link_to(last) = place;
    for (Vec<uint32_t>* column : {&first_, &pile_, &hash_, &next_}) {
      (*column)[place] = (*column)[last];
    }
    if (rows_ == nullptr) {
      std::copy_n(own_.begin() + static_cast<ptrdiff_t>(last * dimension_), dimension_,
                  own_.begin() + static_cast<ptrdiff_t>(place * dimension_));
    }
    each_slot(place, [&](int64_t slot) {
      place_of_[static_cast<size_t>(slot)] = place;
      return true;
    });
  }
  for (Vec<uint32_t>* column : {&first_, &pile_, &hash_, &next_}) column->pop_back();
  if (rows_ == nullptr) own_.resize(last * dimension_);
  return {place, place == last ? kNone : last};
}

size_t DistinctVectors::memory() const {
  size_t numbers = place_of_.capacity() + heads_.capacity() + free_piles_.capacity();
  for (const Vec<uint32_t>* column : {&first_, &pile_, &hash_, &next_}) {
    numbers += column->capacity();
  }
  return numbers * sizeof(uint32_t) + own_.capacity() * sizeof(float) +
         piles_.capacity() * sizeof(SortedChunks);
}

}  // namespace dynhac
