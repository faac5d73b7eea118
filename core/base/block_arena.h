// Memory for adjacency lists: blocks of 16 bytes an entry, cut from chunks that grow up to the size
// of a huge page.
//
// Capacities are rounded up to classes with three significant bits (at most an eighth is wasted),
// and a freed block waits in the list of its class, linked through its own first bytes, so that
// freeing never allocates. Very large blocks come from the allocator one by one and go back to it.
//
// Several threads may allocate at once, each with a hand of its own (see Workers::for_ranges). A
// hand has chunks of its own, and takes freed blocks from the common lists some at a time.

#ifndef DYNHAC_BASE_BLOCK_ARENA_H_
#define DYNHAC_BASE_BLOCK_ARENA_H_

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/base/memory.h"

namespace dynhac {

class BlockArena {
 public:
  static constexpr size_t kEntryBytes = 16;

  BlockArena() = default;
  BlockArena(const BlockArena&) = delete;
  BlockArena& operator=(const BlockArena&) = delete;

  // The capacity that a block for `entries` really has.
  static uint32_t capacity_for(uint32_t entries) {
    if (entries <= 8) return std::max(entries, 1u);
    const int shift = std::bit_width(entries - 1) - 4;
    if (shift <= 0) return entries;
    return ((entries - 1) >> shift << shift) + (1u << shift);
  }

  // Before several hands allocate: there are `hands` of them.
  void provide(uint32_t hands) {
    while (hands_.size() + 1 < hands) hands_.push_back(std::make_unique<Source>());
    for (const auto& source : hands_) source->none_common.reset();
  }

  // `capacity` must be a value of capacity_for. Hand 0 works alone.
  std::byte* allocate(uint32_t capacity, uint32_t hand = 0) {
    if (hand != 0) return allocate_beside(capacity, *hands_[hand - 1]);
    if (capacity > kLargest) return allocate_large(capacity);
    if (std::byte* block = common_.take(class_of(capacity))) return block;
    if (capacity > common_.left) add_chunk(common_, capacity);
    return common_.cut(capacity);
  }

  void release(std::byte* block, uint32_t capacity, uint32_t hand = 0) noexcept {
    if (block == nullptr) return;
    if (capacity > kLargest) {
      std::unique_lock lock(mutex_, std::defer_lock);
      if (hand != 0) lock.lock();
      large_bytes_ -= capacity * kEntryBytes;
      Allocator<Unit>().deallocate(reinterpret_cast<Unit*>(block), capacity);
      return;
    }
    (hand == 0 ? common_ : *hands_[hand - 1]).give(block, class_of(capacity));
  }

  size_t memory() const { return chunk_bytes_ + large_bytes_; }

 private:
  struct alignas(16) Unit {
    Unit() noexcept {}  // not initialised: the pages of a chunk are committed when first used
    std::byte bytes[kEntryBytes];
  };
  // In entries.
  static constexpr uint32_t kFirstChunk = 1 << 12;
  static constexpr uint32_t kLargestChunk = internal::kHugePage / kEntryBytes;
  static constexpr uint32_t kLargest = 1 << 13;  // of blocks cut from chunks

  static uint32_t class_of(uint32_t capacity) {
    const int shift = std::bit_width(capacity) - 4;
    return shift <= 0 ? capacity : static_cast<uint32_t>(8 * (shift + 1)) + (capacity >> shift) - 8;
  }

  struct Source {
    std::array<std::byte*, 128> free{};
    std::byte* bump = nullptr;
    uint32_t left = 0;  // entries left in the newest chunk
    uint32_t next_chunk = kFirstChunk;
    std::bitset<128> none_common;  // classes of which there are no common blocks left

    std::byte* take(uint32_t in) {
      std::byte* block = free[in];
      if (block != nullptr) std::memcpy(&free[in], block, sizeof block);
      return block;
    }
    void give(std::byte* block, uint32_t in) {
      std::memcpy(block, &free[in], sizeof block);
      free[in] = block;
    }
    std::byte* cut(uint32_t capacity) {
      std::byte* block = bump;
      bump += capacity * kEntryBytes;
      left -= capacity;
      return block;
    }
  };

  std::byte* allocate_large(uint32_t capacity) {
    std::byte* block = Allocator<Unit>().allocate(capacity)->bytes;
    large_bytes_ += capacity * kEntryBytes;
    return block;
  }

  void add_chunk(Source& source, uint32_t capacity) {
    const uint32_t size = std::max(capacity, source.next_chunk);
    chunks_.emplace_back(size);
    source.bump = chunks_.back().data()->bytes;
    source.left = size;
    chunk_bytes_ += size * kEntryBytes;
    source.next_chunk = std::min(2 * source.next_chunk, kLargestChunk);
  }

  std::byte* allocate_beside(uint32_t capacity, Source& source) {
    constexpr int kTaken = 32;  // blocks, once in that many allocations
    const uint32_t in = capacity > kLargest ? 0 : class_of(capacity);
    if (capacity <= kLargest) {
      if (std::byte* block = source.take(in)) return block;
      if (source.none_common[in] && capacity <= source.left) return source.cut(capacity);
    }
    std::lock_guard lock(mutex_);
    if (capacity > kLargest) return allocate_large(capacity);
    for (int i = 0; i < kTaken && common_.free[in] != nullptr; ++i) {
      source.give(common_.take(in), in);
    }
    source.none_common[in] = common_.free[in] == nullptr;
    if (std::byte* block = source.take(in)) return block;
    if (capacity > source.left) add_chunk(source, capacity);
    return source.cut(capacity);
  }

  Source common_;
  Vec<std::unique_ptr<Source>> hands_;  // from hand 1 on
  std::mutex mutex_;                    // for hands from 1 on, of all that is common
  Vec<Vec<Unit>> chunks_;
  size_t chunk_bytes_ = 0, large_bytes_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_BLOCK_ARENA_H_
