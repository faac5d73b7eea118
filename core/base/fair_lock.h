// A readers-writer lock in which neither readers nor writers starve.
//
// std::shared_mutex may admit new readers for as long as there are any. Here every caller first
// acquires a second mutex, the turnstile. A waiting writer holds it, so that later readers queue up
// behind the writer.
//
// A thread that writes must not take the lock again: it would wait for itself. This happens if code
// that runs during an update, such as a signal handler or a progress function, reads the model. It
// gets an error instead.

#ifndef DYNHAC_BASE_FAIR_LOCK_H_
#define DYNHAC_BASE_FAIR_LOCK_H_

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

namespace dynhac {

class FairLock {
 public:
  class Writing {
   public:
    explicit Writing(FairLock& lock) : lock_(lock) {
      std::lock_guard pass(lock.turnstile_);
      lock.mutex_.lock();
      lock.writer_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    ~Writing() {
      lock_.writer_.store({}, std::memory_order_relaxed);
      lock_.mutex_.unlock();
    }

   private:
    FairLock& lock_;
  };

  // Both throw std::runtime_error if the calling thread is writing.
  std::shared_lock<std::shared_mutex> read() const {
    require_not_writing();
    std::lock_guard pass(turnstile_);
    return std::shared_lock(mutex_);
  }
  Writing write() {
    require_not_writing();
    return Writing(*this);
  }

 private:
  void require_not_writing() const {
    if (writer_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
      throw std::runtime_error(
          "the model is being updated; code called meanwhile can neither read nor change it");
    }
  }

  std::atomic<std::thread::id> writer_{};
  mutable std::mutex turnstile_;
  mutable std::shared_mutex mutex_;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_FAIR_LOCK_H_
