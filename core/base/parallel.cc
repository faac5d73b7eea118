#include "core/base/parallel.h"

#include <condition_variable>
#include <system_error>
#include <thread>

namespace dynhac {

// The helping threads. `round` counts the calls; a thread that has seen it grow takes part if its
// number is below `wanted`.
struct Workers::Team {
  std::mutex mutex;
  std::condition_variable started, finished;
  uint64_t round = 0;
  Call call = nullptr;
  void* context = nullptr;
  uint32_t wanted = 0, active = 0;
  bool huge_pages = false, ended = false;
  Vec<std::thread> threads;

  explicit Team(uint32_t most) { threads.reserve(most - 1); }

  ~Team() {
    {
      std::lock_guard lock(mutex);
      ended = true;
    }
    started.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void help(uint32_t number) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      started.wait(lock, [&] { return ended || (round != seen && number < wanted); });
      if (ended) return;
      seen = round;
      const HugePages huge(huge_pages);
      lock.unlock();
      call(context, number);
      lock.lock();
      if (--active == 0) finished.notify_one();
    }
  }

  void run(Call what, void* with, uint32_t count) {
    while (threads.size() + 1 < count) {
      const auto number = static_cast<uint32_t>(threads.size() + 1);
      try {
        threads.emplace_back([this, number] { help(number); });
      } catch (const std::system_error&) {
        break;  // no more threads available: the others do all the work
      }
    }
    {
      std::lock_guard lock(mutex);
      call = what;
      context = with;
      wanted = std::min(count, static_cast<uint32_t>(threads.size() + 1));
      active = wanted - 1;
      huge_pages = internal::huge_pages;
      ++round;
    }
    started.notify_all();
    what(with, 0);
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return active == 0; });
  }
};

Workers::Workers(uint32_t threads) : threads_(threads) {}

Workers::~Workers() = default;

void Workers::call(Call call, void* context, uint32_t threads) {
  if (!in_session_) {
    Team(threads).run(call, context, threads);
    return;
  }
  if (team_ == nullptr) team_ = std::make_unique<Team>(threads_);
  team_->run(call, context, threads);
}

void Workers::end_session() noexcept {
  team_.reset();
  in_session_ = false;
}

}  // namespace dynhac
