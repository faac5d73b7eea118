// Columns of a state, made in a forked child: a copy of the state at one moment, without a pause.
//
// fork() gives the child the memory of this process as it is at that moment, and the kernel copies
// a page only when one of the two writes to it. So the state may change in this process while the
// child makes one column after the other and sends it through a pipe. The child never returns from
// the constructor.
//
// The child has one thread, and copies of locks that other threads may have held: what makes the
// columns must neither lock nor start threads, and must not touch Python. It may allocate memory,
// since C libraries keep their allocators usable in a child. The child closes all other files of
// this process, so that neither a lock of a file nor a port outlives this process because of it. It
// ignores Ctrl-C, which a terminal sends to it as well: what that stops is decided here.

#ifndef DYNHAC_BASE_FORKED_COLUMNS_H_
#define DYNHAC_BASE_FORKED_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/progress.h"

namespace dynhac {

using AnyColumn = std::variant<Vec<uint8_t>, Vec<uint32_t>, Vec<int64_t>, Vec<float>, Vec<double>>;

// Makes a column of a state that does not change meanwhile.
using MakeColumn = std::function<AnyColumn(Workers& workers)>;

class ForkedColumns {
 public:
  static bool supported();  // whether this system has fork()

  // Forks. Throws std::system_error if there can be no child.
  explicit ForkedColumns(std::vector<MakeColumn> columns);
  ~ForkedColumns() { close(); }
  ForkedColumns(const ForkedColumns&) = delete;
  ForkedColumns& operator=(const ForkedColumns&) = delete;

  // The next column. Throws std::bad_alloc if the child, or this process, has no memory for it,
  // std::system_error if the child has ended before its time (as when the system is out of memory),
  // and what `poll` throws, of which check() is called several times a second.
  AnyColumn next(Poll* poll);

  // Ends the child.
  void close() noexcept;

 private:
  void read(std::byte* to, size_t size, Poll* poll);

  int64_t child_ = -1;  // its process, -1 after it has ended
  int pipe_ = -1;       // from which its columns are read
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_FORKED_COLUMNS_H_
