#include "core/base/id_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace dynhac {

namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr size_t kFewestBuckets = 8;

uint64_t hash_of(std::string_view text) {
  uint64_t hash = text.size();
  while (!text.empty()) {
    uint64_t piece = 0;
    const size_t length = std::min(text.size(), sizeof piece);
    std::memcpy(&piece, text.data(), length);
    hash = mix_bits(hash ^ piece) + 0x9E3779B97F4A7C15u;
    text.remove_prefix(length);
  }
  return mix_bits(hash);
}

}  // namespace

IdTable::IdTable(std::span<const int64_t> keys, const Texts& texts, int64_t next_key)
    : used_(true), next_key_(next_key) {
  if (keys.size() != texts.size()) throw std::invalid_argument("ids and keys differ in number");
  size_t bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) bytes += texts[i].size();
  make_room(keys.size(), bytes);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 0 || keys[i] >= next_key) throw std::invalid_argument("the key of an id");
    if (entry_of_key_.contains(keys[i])) throw std::invalid_argument("two ids have one key");
    if (find(texts[i]) != nullptr) throw std::invalid_argument("an id is there twice");
    insert(texts[i], keys[i]);
  }
}

size_t IdTable::size() const {
  const auto lock = lock_.read();
  return entry_of_key_.size();
}

int64_t IdTable::next_key() const {
  const auto lock = lock_.read();
  return next_key_;
}

size_t IdTable::locate(std::string_view text, uint64_t hash) const {
  const size_t mask = buckets_.size() - 1;
  size_t at = hash & mask;
  while (buckets_[at] != kNone) {
    const Entry& entry = entries_[buckets_[at]];
    if (entry.hash == hash && this->text(entry) == text) break;
    at = (at + 1) & mask;
  }
  return at;
}

const IdTable::Entry* IdTable::find(std::string_view text) const {
  if (buckets_.empty()) return nullptr;
  const uint32_t found = buckets_[locate(text, hash_of(text))];
  return found == kNone ? nullptr : &entries_[found];
}

int64_t IdTable::key(std::string_view text) const {
  const auto lock = lock_.read();
  const Entry* entry = find(text);
  return entry == nullptr ? kUnknownKey : entry->key;
}

Vec<int64_t> IdTable::keys(const Texts& texts) const {
  const auto lock = lock_.read();
  Vec<int64_t> keys;
  keys.reserve(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const Entry* entry = find(texts[i]);
    keys.push_back(entry == nullptr ? kUnknownKey : entry->key);
  }
  return keys;
}

Texts IdTable::texts(std::span<const int64_t> keys) const {
  const auto lock = lock_.read();
  Texts found;
  found.reserve(keys.size());
  for (const int64_t key : keys) {
    const uint32_t* entry = entry_of_key_.find(key);
    if (entry == nullptr) throw std::out_of_range("the id of a key is gone");
    found.push_back(text(entries_[*entry]));
  }
  return found;
}

void IdTable::make_room(size_t entries, size_t bytes) {
  const size_t count = entries_.size() + entries - std::min(entries, free_.size());
  if (count >= kNone) throw std::length_error("more ids than 32-bit numbers can name");
  const auto grow = [](auto& values, size_t size) {
    if (size > values.capacity()) values.reserve(std::max(size, 2 * values.capacity()));
  };
  grow(entries_, count);
  grow(free_, entries_.capacity());
  grow(retired_, entries_.capacity());
  entry_of_key_.reserve(entry_of_key_.size() + entries);
  if (unused_bytes_ > bytes_.size() / 2) {
    Vec<char> packed;
    packed.reserve(bytes_.size() - unused_bytes_ + bytes);
    entry_of_key_.for_each([&](int64_t, uint32_t number) {
      Entry& entry = entries_[number];
      const std::string_view kept = text(entry);
      entry.begin = packed.size();
      packed.insert(packed.end(), kept.begin(), kept.end());
    });
    bytes_ = std::move(packed);
    unused_bytes_ = 0;
  }
  grow(bytes_, bytes_.size() + bytes);
  size_t buckets = std::max(kFewestBuckets, buckets_.size());
  while (buckets < 2 * count) buckets *= 2;
  if (buckets == buckets_.size()) return;
  Vec<uint32_t> larger(buckets, kNone);
  for (const uint32_t number : buckets_) {
    if (number == kNone) continue;
    size_t at = entries_[number].hash & (buckets - 1);
    while (larger[at] != kNone) at = (at + 1) & (buckets - 1);
    larger[at] = number;
  }
  buckets_ = std::move(larger);
}

uint32_t IdTable::insert(std::string_view text, int64_t key) {
  const Entry entry{key, bytes_.size(), hash_of(text), static_cast<uint32_t>(text.size())};
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  uint32_t number = static_cast<uint32_t>(entries_.size());
  if (free_.empty()) {
    entries_.push_back(entry);
  } else {
    number = free_.back();
    free_.pop_back();
    entries_[number] = entry;
  }
  buckets_[locate(text, entry.hash)] = number;
  entry_of_key_.insert(key, number);
  return number;
}

Vec<int64_t> IdTable::reserve(const Texts& texts) {
  const auto lock = lock_.write();
  size_t fresh = 0, bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() >= kNone) throw std::length_error("an id is longer than 4 GiB");
    if (find(texts[i]) != nullptr) continue;
    ++fresh;
    bytes += texts[i].size();
  }
  make_room(fresh, bytes);
  new_entries_.reserve(fresh);
  Vec<int64_t> keys;
  keys.reserve(texts.size());
  // Nothing below can fail.
  for (size_t i = 0; i < texts.size(); ++i) {
    const Entry* entry = find(texts[i]);
    if (entry == nullptr) {
      new_entries_.push_back(insert(texts[i], next_key_++));
      entry = &entries_[new_entries_.back()];
    }
    keys.push_back(entry->key);
  }
  if (!texts.empty() && !used()) {
    first_ = true;
    used_.store(true, std::memory_order_release);
  }
  return keys;
}

void IdTable::erase_bucket(uint32_t number) noexcept {
  const size_t mask = buckets_.size() - 1;
  size_t hole = locate(text(entries_[number]), entries_[number].hash);
  for (size_t at = (hole + 1) & mask; buckets_[at] != kNone; at = (at + 1) & mask) {
    // An entry may fill the hole if that does not put it before its home.
    const size_t home = entries_[buckets_[at]].hash & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      buckets_[hole] = buckets_[at];
      hole = at;
    }
  }
  buckets_[hole] = kNone;
}

void IdTable::free_entry(uint32_t number) noexcept {
  unused_bytes_ += entries_[number].length;
  entry_of_key_.erase(entries_[number].key);
  free_.push_back(number);
}

void IdTable::release() noexcept {
  const auto lock = lock_.write();
  for (const uint32_t number : new_entries_) {
    erase_bucket(number);
    free_entry(number);
  }
  recycle(new_entries_);
  if (first_) used_.store(false, std::memory_order_release);
  first_ = false;
}

void IdTable::commit(std::span<const int64_t> removed) noexcept {
  const auto lock = lock_.write();
  for (const int64_t key : removed) {
    const uint32_t* entry = entry_of_key_.find(key);
    if (entry == nullptr) continue;
    erase_bucket(*entry);
    retired_.push_back(*entry);
  }
  recycle(new_entries_);
  first_ = false;
}

void IdTable::forget_retired() noexcept {
  const auto lock = lock_.write();
  for (const uint32_t number : retired_) free_entry(number);
  recycle(retired_);
}

}  // namespace dynhac
