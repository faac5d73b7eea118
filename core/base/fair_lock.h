// A readers-writer lock in which neither readers nor writers starve.
//
// std::shared_mutex may admit new readers for as long as there are any. Here every caller first
// acquires a second mutex, the turnstile. A waiting writer holds it, so that later readers queue up
// behind the writer.

#ifndef DYNHAC_BASE_FAIR_LOCK_H_
#define DYNHAC_BASE_FAIR_LOCK_H_

#include <mutex>
#include <shared_mutex>

namespace dynhac {

class FairLock {
 public:
  std::shared_lock<std::shared_mutex> read() const {
    std::lock_guard pass(turnstile_);
    return std::shared_lock(mutex_);
  }

  std::unique_lock<std::shared_mutex> write() {
    std::lock_guard pass(turnstile_);
    return std::unique_lock(mutex_);
  }

 private:
  mutable std::mutex turnstile_;
  mutable std::shared_mutex mutex_;
};

}  // namespace dynhac

#endif  // DYNHAC_BASE_FAIR_LOCK_H_
