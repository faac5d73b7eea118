// A column of ids as users know them: all ints, or all texts.

#ifndef DYNHAC_BASE_ID_COLUMN_H_
#define DYNHAC_BASE_ID_COLUMN_H_

#include <cstdint>

#include "core/base/memory.h"
#include "core/base/texts.h"

namespace dynhac {

struct IdColumn {
  bool text = false;
  Vec<int64_t> ints;
  Texts texts;

  size_t size() const { return text ? texts.size() : ints.size(); }
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_ID_COLUMN_H_
