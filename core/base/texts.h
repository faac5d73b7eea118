// A column of texts in one piece of memory.

#ifndef DYNHAC_BASE_TEXTS_H_
#define DYNHAC_BASE_TEXTS_H_

#include <cstddef>
#include <string_view>

#include "core/base/memory.h"

namespace dynhac {

class Texts {
 public:
  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }

  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }

  void push_back(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    ends_.push_back(bytes_.size());
  }

  void reserve(size_t count) { ends_.reserve(count); }

 private:
  Vec<char> bytes_;
  Vec<size_t> ends_;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_TEXTS_H_
