// Runs the pieces of a loop on several threads.
//
// The caller divides the work into pieces, independently of the number of threads; every piece
// writes to its own part of the output. So results depend neither on the number of threads nor on
// which thread ran which piece. The first exception (by piece number) is rethrown on the calling
// thread after all have stopped.
//
// The helping threads end with the loop, or with the Session that it is part of: in between they
// wait, awake for some microseconds and then asleep. Outside there are no threads that a fork could
// lose.

#ifndef DYNHAC_BASE_PARALLEL_H_
#define DYNHAC_BASE_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "core/base/memory.h"

namespace dynhac {

namespace internal {

// Tests set it above 1 to cut small inputs into many ranges.
inline std::atomic<size_t> range_divisor{1};

}  // namespace internal

class Workers {
 public:
  explicit Workers(uint32_t threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // While it lives, threads wait for the next loop, and only one thread may call run(). The first
  // loop of more than one piece starts them.
  class Session {
   public:
    explicit Session(Workers& workers) : workers_(workers) { workers_.in_session_ = true; }
    ~Session() { workers_.end_session(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

   private:
    Workers& workers_;
  };

  uint32_t count() const { return threads_; }

  // Calls body(piece, thread) for every piece in [0, pieces); thread 0 is the calling one.
  template <class Body>
  [[gnu::noinline]] void run(size_t pieces, Body body) {
    if (threads_ <= 1 || pieces <= 1 || (pieces < kWorthStarting && team_ == nullptr)) {
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
    using Work = decltype(work);
    call([](void* context, uint32_t thread) { (*static_cast<Work*>(context))(thread); }, &work,
         static_cast<uint32_t>(std::min<size_t>(threads_, pieces)));
    if (failure) std::rethrow_exception(failure);
  }

  // A loop over [0, count) cut into ranges of `size`, the last one maybe shorter.
  static size_t ranges(size_t count, size_t size) {
    const size_t one = range_size(size);
    return count <= one ? count > 0 : (count + one - 1) / one;
  }
  static size_t range_size(size_t size) {
    const size_t divisor = internal::range_divisor.load(std::memory_order_relaxed);
    return divisor == 1 ? size : std::max<size_t>(size / divisor, 1);
  }

  // Calls body(begin, end, hand) for all of these ranges. `hand` is 0 if the calling thread works
  // alone, else 1 + the number of the thread: what several hands change must be separate by hand.
  // A single range is run directly: what a small update calls must cost nothing.
  template <class Body>
  void for_ranges(size_t count, size_t size, Body body) {
    for_ranges_numbered(count, size, [&](size_t, size_t begin, size_t end, uint32_t hand) {
      body(begin, end, hand);
    });
  }
  // The same, as body(range, begin, end, hand).
  template <class Body>
  void for_ranges_numbered(size_t count, size_t size, Body body) {
    if (count == 0) return;
    const size_t one = range_size(size);
    if (count <= one) {
      body(size_t{0}, size_t{0}, count, 0u);
      return;
    }
    run((count + one - 1) / one, [&](size_t range, uint32_t thread) {
      body(range, range * one, std::min(count, (range + 1) * one), thread + 1);
    });
  }
  static bool is_caller(uint32_t hand) { return hand <= 1; }
  uint32_t hands() const { return threads_ + 1; }

 private:
  // Threads are not started for a loop of fewer pieces.
  static constexpr size_t kWorthStarting = 4;

  struct Team;
  using Call = void (*)(void* context, uint32_t thread);
  // Calls call(context, t) for every t < threads, t == 0 on this thread. If threads cannot be
  // started, for fewer of them.
  void call(Call call, void* context, uint32_t threads);
  void end_session() noexcept;

  const uint32_t threads_;
  bool in_session_ = false;
  std::unique_ptr<Team> team_;  // of the session
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_PARALLEL_H_
