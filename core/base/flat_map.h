// A hash map from integers to small values, flat in memory.
//
// Open addressing with linear probing in one array of slots, a power of two long. At most three
// quarters of the slots are taken, so every probe ends at an empty one. Erasing shifts the rest of
// the run back instead of leaving a tombstone: a map with any number of insertions and erasures
// does not slow down.
//
// Invariants:
// - A slot is empty iff its key is kReserved, the largest value of Key.
// - Between the home slot of a key and the slot that holds it there is no empty slot.
// - With 64-bit keys every value is a valid key: kReserved itself has a slot of its own behind the
//   others, and `holds_reserved_` tells whether that is taken. With 32-bit keys (handles, the
//   largest of which is never used) kReserved is not a valid key and has no slot.
//
// The order of for_each depends on the operations made on the map, never on addresses. It is still
// arbitrary: no decision may depend on it. Before copying the entries of one map into another,
// reserve the sum of the sizes: keys come in the order of their home slots, and would cluster in
// one part of a table that is too small for all of them.

#ifndef DYNHAC_BASE_FLAT_MAP_H_
#define DYNHAC_BASE_FLAT_MAP_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "core/base/memory.h"
#include "core/base/parallel.h"

namespace dynhac {

// A bijection of 64-bit integers whose every output bit depends on every input bit (the finalizer
// of splitmix64), so that the low bits alone make a good home slot.
inline uint64_t mix_bits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Pointers and references to values hold until the next insertion, erasure, clear, reserve or swap.
template <class Value, class Key = uint32_t>
class FlatMap {
  static_assert(std::is_integral_v<Key> && (sizeof(Key) == 4 || sizeof(Key) == 8));
  // Moving entries must not fail, or an insertion could not be all or nothing.
  static_assert(std::is_nothrow_default_constructible_v<Value>);
  static_assert(std::is_nothrow_move_assignable_v<Value>);

 public:
  static constexpr Key kReserved = std::numeric_limits<Key>::max();
  static constexpr bool kEveryKey = sizeof(Key) == 8;

  FlatMap() noexcept = default;
  FlatMap(const FlatMap&) = default;
  FlatMap& operator=(const FlatMap& other) {
    FlatMap(other).swap(*this);
    return *this;
  }
  FlatMap(FlatMap&& other) noexcept { swap(other); }
  FlatMap& operator=(FlatMap&& other) noexcept {
    FlatMap(std::move(other)).swap(*this);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }  // slots, to estimate memory

  // The value of `key`, or nullptr.
  Value* find(Key key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  const Value* find(Key key) const {
    if (capacity_ == 0) return nullptr;
    if (is_reserved(key)) return holds_reserved_ ? &slots_[capacity_].value : nullptr;
    const size_t at = locate(key);
    return slots_[at].key == key ? &slots_[at].value : nullptr;
  }

  bool contains(Key key) const { return find(key) != nullptr; }

  // A hint that `key` will be looked up soon.
  void prefetch(Key key) const {
    if (capacity_ > 0) __builtin_prefetch(&slots_[home(key)]);
  }

  // Adds `key` unless the map has it. Returns its value, old or new, and whether it was added. When
  // memory runs out, std::bad_alloc, with the map as it was.
  std::pair<Value*, bool> insert(Key key, Value value) {
    auto [slot, added] = claim(key);
    if (added) *slot = std::move(value);
    return {slot, added};
  }

  // Adds keys[i] with the value value_of(i), for all i, unless the map has one of them or one is
  // listed twice: then the map stays as it was. Returns whether they were added. Guarantee as for
  // insert.
  template <class ValueOf>
  bool insert_new(Workers& workers, std::span<const Key> keys, ValueOf value_of) {
    constexpr size_t kRange = size_t{1} << 10;
    reserve(size_ + keys.size());
    Vec<size_t> added(Workers::ranges(keys.size(), kRange), 0);  // of every range, from its begin
    workers.for_ranges_numbered(keys.size(), kRange,
                                [&](size_t range, size_t begin, size_t end, uint32_t) {
                                  for (size_t i = begin; i < end; ++i) {
                                    Value* value = claim_beside(keys[i]);
                                    if (value == nullptr) break;
                                    *value = value_of(i);
                                    ++added[range];
                                  }
                                });
    size_t total = 0;
    for (const size_t count : added) total += count;
    size_ += total;
    if (total == keys.size()) return true;
    const size_t one = Workers::range_size(kRange);
    for (size_t range = 0; range < added.size(); ++range) {
      for (size_t i = 0; i < added[range]; ++i) erase(keys[range * one + i]);
    }
    return false;
  }

  // The value of `key`; adds Value() first if need be, with insert's guarantee.
  Value& operator[](Key key) { return *claim(key).first; }

  // Returns whether `key` was there.
  bool erase(Key key) {
    if (capacity_ == 0) return false;
    if (is_reserved(key)) {
      if (!holds_reserved_) return false;
      holds_reserved_ = false;
      slots_[capacity_].value = Value();
    } else {
      size_t hole = locate(key);
      if (slots_[hole].key != key) return false;
      const size_t mask = capacity_ - 1;
      for (size_t at = (hole + 1) & mask; slots_[at].key != kReserved; at = (at + 1) & mask) {
        // The entry may fill the hole iff that does not put it before its home slot.
        if (((at - home(slots_[at].key)) & mask) >= ((at - hole) & mask)) {
          slots_[hole] = std::move(slots_[at]);
          hole = at;
        }
      }
      slots_[hole] = Slot();
    }
    --size_;
    return true;
  }

  // visit(key, value&) for every entry. `visit` must not insert into or erase from this map.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (size_t at = 0; at < capacity_; ++at) {
      if (slots_[at].key != kReserved) visit(Key{slots_[at].key}, slots_[at].value);
    }
    if (holds_reserved_) visit(Key{kReserved}, slots_[capacity_].value);
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (size_t at = 0; at < capacity_; ++at) {
      if (slots_[at].key != kReserved) visit(Key{slots_[at].key}, std::as_const(slots_[at].value));
    }
    if (holds_reserved_) visit(Key{kReserved}, std::as_const(slots_[capacity_].value));
  }

  // Forgets all entries but keeps the slots, in time proportional to the capacity. To give the
  // memory back, swap with, or assign, a new map.
  void clear() noexcept {
    if (size_ == 0) return;
    for (Slot& slot : slots_) slot = Slot();
    size_ = 0;
    holds_reserved_ = false;
  }

  // Makes room: until `count` entries are exceeded no insertion allocates. Guarantee as for insert.
  void reserve(size_t count) {
    if (count > room()) rehash(count);
  }

  void swap(FlatMap& other) noexcept {
    slots_.swap(other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(size_, other.size_);
    std::swap(holds_reserved_, other.holds_reserved_);
  }

 private:
  struct Slot {
    Key key = kReserved;
    Value value = Value();
  };

  static constexpr size_t kSmallest = 4;

  static bool is_reserved(Key key) {
    if constexpr (kEveryKey) return key == kReserved;
    assert(key != kReserved);
    return false;
  }

  size_t room() const { return capacity_ / 4 * 3; }
  size_t home(Key key) const { return mix_bits(static_cast<uint64_t>(key)) & (capacity_ - 1); }

  // The slot that holds `key`, or the empty one where it would go.
  size_t locate(Key key) const {
    size_t at = home(key);
    while (slots_[at].key != key && slots_[at].key != kReserved) at = (at + 1) & (capacity_ - 1);
    return at;
  }

  std::pair<Value*, bool> claim(Key key) {
    if (Value* found = find(key)) return {found, false};
    if (size_ >= room()) rehash(size_ + 1);
    ++size_;
    if (is_reserved(key)) {
      holds_reserved_ = true;
      return {&slots_[capacity_].value, true};
    }
    Slot& slot = slots_[locate(key)];
    slot.key = key;
    return {&slot.value, true};
  }

  // As claim, while other threads do the same; needs room, and does not count. Returns nullptr if
  // the map has the key.
  Value* claim_beside(Key key) {
    if (is_reserved(key)) {
      const bool had = __atomic_exchange_n(&holds_reserved_, true, __ATOMIC_RELAXED);
      return had ? nullptr : &slots_[capacity_].value;
    }
    for (size_t at = home(key);; at = (at + 1) & (capacity_ - 1)) {
      Key found = kReserved;  // an empty slot
      if (__atomic_compare_exchange_n(&slots_[at].key, &found, key, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
        return &slots_[at].value;
      }
      if (found == key) return nullptr;
    }
  }

  // Moves to the smallest table with room for `count` entries.
  void rehash(size_t count) {
    FlatMap grown;
    size_t capacity = kSmallest;
    while (capacity / 4 * 3 < count) capacity *= 2;
    grown.slots_.resize(capacity + (kEveryKey ? 1 : 0));
    // Nothing below can fail.
    grown.capacity_ = capacity;
    for_each([&grown](Key key, Value& value) { *grown.claim(key).first = std::move(value); });
    swap(grown);
  }

  Vec<Slot> slots_;
  size_t capacity_ = 0;  // without the slot of kReserved
  size_t size_ = 0;
  bool holds_reserved_ = false;
};

// Empties a map that is reused. One that has grown large gives its slots up: the time to clear is
// proportional to the capacity, and one large use must not slow down all later ones.
template <class Value, class Key>
void recycle(FlatMap<Value, Key>& map) noexcept {
  if (map.capacity() > 1024) {
    FlatMap<Value, Key>().swap(map);
  } else {
    map.clear();
  }
}

}  // namespace dynhac

#endif  // DYNHAC_BASE_FLAT_MAP_H_
