#include "core/base/parallel.h"

#include <chrono>
#include <condition_variable>
#include <system_error>
#include <thread>

namespace dynhac {

namespace {

// Loops follow each other quickly: who waits looks again and again for this long before it sleeps,
// if there is a processor for every thread.
constexpr std::chrono::microseconds kPatience{50};

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#else
  std::this_thread::yield();
#endif
}

template <class Done>
bool wait_awake(Done done) {
  constexpr int kLooks = 32;  // between two looks at the clock
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

// The helping threads. `round` counts the loops. A loop is open while `wanted` is not 0: threads
// with a number below it may take part, and `working` counts those that do. The calling thread
// closes the loop when no piece is left, so that it never waits for a thread that did not start.
struct Workers::Team {
  std::mutex mutex;
  std::condition_variable started, finished;
  std::atomic<uint64_t> round{0};
  std::atomic<uint32_t> working{0};
  Call call = nullptr;
  void* context = nullptr;
  uint32_t wanted = 0, asleep = 0;
  bool huge_pages = false, ended = false;
  const bool impatient;
  Vec<std::thread> threads;

  explicit Team(uint32_t most) : impatient(most > std::thread::hardware_concurrency()) {
    threads.reserve(most - 1);
  }

  ~Team() {
    {
      std::lock_guard lock(mutex);
      ended = true;
      round.fetch_add(1, std::memory_order_release);
    }
    started.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void help(uint32_t number) {
    uint64_t seen = 0;
    for (;;) {
      auto begun = [&] { return round.load(std::memory_order_acquire) != seen; };
      if (!impatient) wait_awake(begun);
      std::unique_lock lock(mutex);
      ++asleep;
      started.wait(lock, begun);
      --asleep;
      if (ended) return;
      seen = round.load(std::memory_order_relaxed);
      if (number >= wanted) continue;
      working.fetch_add(1, std::memory_order_relaxed);
      const HugePages huge(huge_pages);
      const Call what = call;
      void* const with = context;
      lock.unlock();
      what(with, number);
      if (working.fetch_sub(1, std::memory_order_release) == 1) {
        lock.lock();  // so that the caller, who looked before, is asleep by now
        finished.notify_one();
      }
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
    bool wake;
    {
      std::lock_guard lock(mutex);
      call = what;
      context = with;
      wanted = count;
      huge_pages = internal::huge_pages;
      round.fetch_add(1, std::memory_order_release);
      wake = asleep > 0;
    }
    if (wake) started.notify_all();
    what(with, 0);
    std::unique_lock lock(mutex);
    wanted = 0;
    auto idle = [&] { return working.load(std::memory_order_acquire) == 0; };
    if (idle()) return;
    lock.unlock();
    if (!impatient && wait_awake(idle)) return;
    lock.lock();
    finished.wait(lock, idle);
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
