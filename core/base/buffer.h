// An array whose elements are not initialised: those of a large Vec would be written twice, the
// first time by one thread.

#ifndef DYNHAC_BASE_BUFFER_H_
#define DYNHAC_BASE_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <type_traits>

#include "core/base/memory.h"

namespace dynhac {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Buffer() noexcept = default;
  explicit Buffer(size_t size) : cells_(size), size_(size) {}
  Buffer(std::initializer_list<T> values) : Buffer(values.size()) {
    std::copy(values.begin(), values.end(), begin());
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return reinterpret_cast<T*>(cells_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(cells_.data()); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
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
  // Drops those after the first `size`.
  void shrink(size_t size) { size_ = std::min(size_, size); }
  bool operator==(const Buffer& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
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
