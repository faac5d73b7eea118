#include "core/base/id_table.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace dynhac {

size_t IdTable::home(std::string_view text) const {
  uint64_t hash = text.size();
  while (!text.empty()) {
    uint64_t piece = 0;
    const size_t length = std::min(text.size(), sizeof piece);
    std::memcpy(&piece, text.data(), length);
    hash = mix_bits(hash ^ piece) + 0x9E3779B97F4A7C15u;
    text.remove_prefix(length);
  }
  return mix_bits(hash) & (buckets_.size() - 1);
}

size_t IdTable::locate(std::string_view text) const {
  size_t at = home(text);
  while (buckets_[at] != kUnknownKey && *text_of_.find(buckets_[at]) != text) {
    at = (at + 1) & (buckets_.size() - 1);
  }
  return at;
}

void IdTable::make_room(size_t count) {
  constexpr size_t kFewestBuckets = 8;
  const size_t total = text_of_.size() + count;
  text_of_.reserve(total);
  if (retired_.capacity() < total) retired_.reserve(2 * total);
  size_t needed = std::max(kFewestBuckets, buckets_.size());
  while (needed < 2 * total) needed *= 2;
  if (needed == buckets_.size()) return;
  Vec<int64_t> before(needed, kUnknownKey);
  before.swap(buckets_);
  for (const int64_t key : before) {
    if (key != kUnknownKey) buckets_[locate(*text_of_.find(key))] = key;
  }
}

void IdTable::insert(Text text, int64_t key) noexcept {
  buckets_[locate(text)] = key;
  text_of_.insert(key, std::move(text));
}

IdTable::IdTable(std::span<const int64_t> keys, const Texts& texts, int64_t next_key)
    : used_(true), next_key_(next_key) {
  if (keys.size() != texts.size()) throw std::invalid_argument("ids and keys differ in number");
  make_room(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 0 || keys[i] >= next_key) throw std::invalid_argument("the key of an id");
    if (text_of_.contains(keys[i])) throw std::invalid_argument("two ids have one key");
    if (buckets_[locate(texts[i])] != kUnknownKey) throw std::invalid_argument("an id is twice");
    insert(Text(texts[i]), keys[i]);
  }
}

size_t IdTable::size() const {
  const auto lock = lock_.read();
  return text_of_.size();
}

int64_t IdTable::next_key() const {
  const auto lock = lock_.read();
  return next_key_;
}

Vec<int64_t> IdTable::keys(const Texts& texts) const {
  const auto lock = lock_.read();
  Vec<int64_t> keys(texts.size(), kUnknownKey);
  if (buckets_.empty()) return keys;
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = buckets_[locate(texts[i])];
  return keys;
}

Texts IdTable::texts(std::span<const int64_t> keys) const {
  const auto lock = lock_.read();
  return texts_unlocked(keys);
}

Texts IdTable::texts_unlocked(std::span<const int64_t> keys) const {
  Texts found;
  found.reserve(keys.size());
  for (const int64_t key : keys) {
    const Text* text = text_of_.find(key);
    if (text == nullptr) throw std::out_of_range("the id of a key is gone");
    found.push_back(*text);
  }
  return found;
}

Vec<int64_t> IdTable::reserve(const Texts& texts) {
  const auto lock = lock_.write();
  Vec<int64_t> keys(texts.size());
  make_room(texts.size());
  new_keys_.reserve(texts.size());
  try {
    for (size_t i = 0; i < texts.size(); ++i) {
      keys[i] = buckets_[locate(texts[i])];
      if (keys[i] != kUnknownKey) continue;
      Text text(texts[i]);
      // Nothing below can fail.
      keys[i] = next_key_++;
      insert(std::move(text), keys[i]);
      new_keys_.push_back(keys[i]);
    }
  } catch (...) {
    remove_new_keys();
    throw;
  }
  if (!texts.empty() && !used()) {
    first_ = true;
    used_.store(true, std::memory_order_release);
  }
  return keys;
}

void IdTable::erase_bucket(int64_t key) noexcept {
  const size_t mask = buckets_.size() - 1;
  size_t hole = locate(*text_of_.find(key));
  for (size_t at = (hole + 1) & mask; buckets_[at] != kUnknownKey; at = (at + 1) & mask) {
    // A key may fill the hole if that does not put it before its home.
    if (((at - home(*text_of_.find(buckets_[at]))) & mask) >= ((at - hole) & mask)) {
      buckets_[hole] = buckets_[at];
      hole = at;
    }
  }
  buckets_[hole] = kUnknownKey;
}

void IdTable::remove_new_keys() noexcept {
  for (const int64_t key : new_keys_) {
    erase_bucket(key);
    text_of_.erase(key);
  }
  recycle(new_keys_);
}

void IdTable::release() noexcept {
  const auto lock = lock_.write();
  remove_new_keys();
  if (first_) used_.store(false, std::memory_order_release);
  first_ = false;
}

void IdTable::commit(std::span<const int64_t> removed) noexcept {
  const auto lock = lock_.write();
  for (const int64_t key : removed) {
    if (!text_of_.contains(key)) continue;
    erase_bucket(key);
    retired_.push_back(key);
  }
  recycle(new_keys_);
  first_ = false;
}

void IdTable::forget_retired() noexcept {
  const auto lock = lock_.write();
  for (const int64_t key : retired_) text_of_.erase(key);
  recycle(retired_);
}

}  // namespace dynhac
