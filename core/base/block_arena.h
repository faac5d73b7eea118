// Memory for adjacency lists: blocks of 16 bytes an entry, cut from chunks that grow up to the size
// of a huge page.
//
// Capacities are rounded up to classes with three significant bits (at most an eighth is wasted),
// and a freed block waits in the list of its class, linked through its own first bytes, so that
// freeing never allocates. Very large blocks come from the allocator one by one and go back to it.

#ifndef DYNHAC_BASE_BLOCK_ARENA_H_
#define DYNHAC_BASE_BLOCK_ARENA_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

  // `capacity` must be a value of capacity_for.
  std::byte* allocate(uint32_t capacity) {
    if (capacity > kLargest) {
      std::byte* block = Allocator<Unit>().allocate(capacity)->bytes;
      large_bytes_ += capacity * kEntryBytes;
      return block;
    }
    std::byte*& head = free_[class_of(capacity)];
    if (head != nullptr) {
      std::byte* block = head;
      std::memcpy(&head, block, sizeof head);
      return block;
    }
    if (capacity > left_) {
      const uint32_t size = std::max(capacity, next_chunk_);
      chunks_.emplace_back(size);
      bump_ = chunks_.back().data()->bytes;
      left_ = size;
      chunk_bytes_ += size * kEntryBytes;
      next_chunk_ = std::min(2 * next_chunk_, kLargestChunk);
    }
    std::byte* block = bump_;
    bump_ += capacity * kEntryBytes;
    left_ -= capacity;
    return block;
  }

  void release(std::byte* block, uint32_t capacity) noexcept {
    if (block == nullptr) return;
    if (capacity > kLargest) {
      large_bytes_ -= capacity * kEntryBytes;
      Allocator<Unit>().deallocate(reinterpret_cast<Unit*>(block), capacity);
      return;
    }
    std::byte*& head = free_[class_of(capacity)];
    std::memcpy(block, &head, sizeof head);
    head = block;
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

  std::array<std::byte*, 128> free_{};
  Vec<Vec<Unit>> chunks_;
  std::byte* bump_ = nullptr;
  uint32_t left_ = 0;  // entries left in the newest chunk
  uint32_t next_chunk_ = kFirstChunk;
  size_t chunk_bytes_ = 0, large_bytes_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_BLOCK_ARENA_H_
