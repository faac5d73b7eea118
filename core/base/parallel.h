// Runs the pieces of a loop on several threads.
//
// The caller divides the work into pieces, independently of the number of threads; every piece
// writes to its own part of the output. So results depend neither on the number of threads nor on
// which thread ran which piece. The first exception (by piece number) is rethrown on the calling
// thread after all have stopped.

#ifndef DYNHAC_BASE_PARALLEL_H_
#define DYNHAC_BASE_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/memory.h"

namespace dynhac {

class Workers {
 public:
  explicit Workers(uint32_t threads) : threads_(threads) {}
  uint32_t count() const { return threads_; }

  // Calls body(piece, thread) for every piece in [0, pieces).
  template <class Body>
  void run(size_t pieces, Body body) {
    const size_t threads = std::min<size_t>(threads_, pieces);
    if (threads <= 1) {
      for (size_t piece = 0; piece < pieces; ++piece) body(piece, 0u);
      return;
    }
    std::atomic<size_t> next{0};
    std::mutex failure_mutex;
    std::exception_ptr failure;
    size_t failed_piece = pieces;
    auto work = [&](uint32_t thread) {
      for (size_t piece; (piece = next.fetch_add(1)) < pieces;) {
        try {
          body(piece, thread);
        } catch (...) {
          std::lock_guard lock(failure_mutex);
          if (piece < failed_piece) {
            failed_piece = piece;
            failure = std::current_exception();
          }
          next.store(pieces);
        }
      }
    };
    {
      Vec<std::jthread> helpers;
      helpers.reserve(threads - 1);
      for (uint32_t t = 1; t < threads; ++t) {
        try {
          helpers.emplace_back(work, t);
        } catch (const std::system_error&) {
          break;  // no more threads available: the others do all the work
        }
      }
      work(0);
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  uint32_t threads_;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_PARALLEL_H_
