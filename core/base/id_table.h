// Text ids of vertices and points. The engine knows int64 keys; this table translates.
//
// An update uses the table as a transaction: `reserve` gives keys to new texts, then either
// `commit` makes them permanent, or `release` takes them back. There is one transaction at a time.
//
// Keys are counted up and never given to a second text. So a reader that has read keys from the
// engine either gets their texts or learns that they are gone; it never gets a wrong text.
//
// The texts of removed keys are *retired*: they can no longer be found by text, but their keys
// still have them until `forget_retired`. Watches need them to report the points that left.
//
// Looking up is safe at any time beside one writer.
//
// Invariants:
// - text_of_ has all keys with their texts, the retired ones included.
// - buckets_ is a hash table with linear probing, at most half full. It has every key that is not
//   retired, at or after the home of its text; no two of these have the same text.

#ifndef DYNHAC_BASE_ID_TABLE_H_
#define DYNHAC_BASE_ID_TABLE_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/fair_lock.h"
#include "core/base/flat_map.h"
#include "core/base/memory.h"
#include "core/base/texts.h"

namespace dynhac {

class IdTable {
 public:
  static constexpr int64_t kUnknownKey = -1;  // which the engine never holds

  IdTable() = default;
  // The table that has these texts under these keys. Throws std::invalid_argument if a key or a
  // text is there twice, or a key is not in 0..next_key - 1.
  IdTable(std::span<const int64_t> keys, const Texts& texts, int64_t next_key);

  // Whether ids are texts. Set by the first transaction that reserves one, if it is committed.
  bool used() const { return used_.load(std::memory_order_acquire); }
  size_t size() const;
  int64_t next_key() const;

  // kUnknownKey for texts that have no key.
  Vec<int64_t> keys(const Texts& texts) const;
  // Throws std::out_of_range for a key that is gone.
  Texts texts(std::span<const int64_t> keys) const;
  // The same without the lock, while there are no updates: also in a forked child.
  Texts texts_unlocked(std::span<const int64_t> keys) const;

  // Returns the keys of texts, new ones for those that have none. All or nothing. Every transaction
  // begins with it, also one that only removes.
  Vec<int64_t> reserve(const Texts& texts);
  void release() noexcept;
  // Retires keys that the engine does not hold any more; none may be listed twice.
  void commit(std::span<const int64_t> removed) noexcept;
  void forget_retired() noexcept;

 private:
  using Text = std::basic_string<char, std::char_traits<char>, Allocator<char>>;

  size_t home(std::string_view text) const;
  // The bucket that holds the key of a text, or the empty one where it would go.
  size_t locate(std::string_view text) const;
  void insert(Text text, int64_t key) noexcept;  // needs room
  void make_room(size_t count);
  void erase_bucket(int64_t key) noexcept;
  void remove_new_keys() noexcept;

  mutable FairLock lock_;
  std::atomic<bool> used_{false};
  FlatMap<Text, int64_t> text_of_;
  Vec<int64_t> buckets_;  // a power of two of them; kUnknownKey: empty
  Vec<int64_t> retired_;  // has room for all keys
  int64_t next_key_ = 0;

  // Of the transaction.
  Vec<int64_t> new_keys_;
  bool first_ = false;  // it is the one that makes ids texts
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_ID_TABLE_H_
