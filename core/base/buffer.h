// An array whose elements are not initialised: those of a large Vec would be written twice, the
// first time by one thread.

#ifndef DYNHAC_BASE_BUFFER_H_
#define DYNHAC_BASE_BUFFER_H_

#include <cstddef>
#include <type_traits>

#include "core/base/memory.h"

namespace dynhac {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Buffer() noexcept = default;
  explicit Buffer(size_t size) : cells_(size), size_(size) {}

  size_t size() const { return size_; }
  T* data() { return reinterpret_cast<T*>(cells_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(cells_.data()); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  // With other elements than before.
  void renew(size_t size) {
    if (size > cells_.size()) {
      cells_.clear();
      cells_.resize(size);
    }
    size_ = size;
  }
  // As for a Vec.
  friend void recycle(Buffer& buffer) noexcept {
    buffer.size_ = 0;
    if (is_large(buffer.cells_)) Vec<Cell>().swap(buffer.cells_);
  }

 private:
  struct alignas(T) Cell {
    Cell() noexcept {}
    std::byte bytes[sizeof(T)];
  };
  Vec<Cell> cells_;  // size_ of them are in use
  size_t size_ = 0;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_BUFFER_H_
