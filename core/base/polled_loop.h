// Loops on several threads that can be stopped.

#ifndef DYNHAC_BASE_POLLED_LOOP_H_
#define DYNHAC_BASE_POLLED_LOOP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/parallel.h"
#include "core/base/progress.h"

namespace dynhac {

// Calls body(piece) for every piece, and tells how much of `amount` is done. The calling thread
// polls; `poll` may be nullptr.
template <class Body>
void run_polled(Workers& workers, size_t pieces, uint64_t amount, Poll* poll, Body body) {
  std::atomic<size_t> done{0};
  workers.run(pieces, [&](size_t piece, uint32_t thread) {
    body(piece);
    const size_t so_far = done.fetch_add(1, std::memory_order_relaxed) + 1;
    if (thread == 0 && poll != nullptr && pieces > 1) poll->reach(amount * so_far / pieces);
  });
}

}  // namespace dynhac

#endif  // DYNHAC_BASE_POLLED_LOOP_H_
