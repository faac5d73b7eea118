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
};

Workers::Workers(uint32_t threads) : threads_(threads) {}

Workers::~Workers() {
  rest();
}

void Workers::rest() noexcept {
  if (team_ == nullptr) return;
  {
    std::lock_guard lock(team_->mutex);
    team_->ended = true;
  }
  team_->started.notify_all();
  for (std::thread& thread : team_->threads) thread.join();
  team_.reset();
}

void Workers::call(Call call, void* context, uint32_t threads) {
  if (team_ == nullptr) {
    team_ = std::make_unique<Team>();
    team_->threads.reserve(threads_ - 1);
  }
  Team& team = *team_;
  while (team.threads.size() + 1 < threads) {
    const auto number = static_cast<uint32_t>(team.threads.size() + 1);
    try {
      team.threads.emplace_back([&team, number] { team.help(number); });
    } catch (const std::system_error&) {
      break;  // no more threads available: the others do all the work
    }
  }
  {
    std::lock_guard lock(team.mutex);
    team.call = call;
    team.context = context;
    team.wanted = std::min(threads, static_cast<uint32_t>(team.threads.size() + 1));
    team.active = team.wanted - 1;
    team.huge_pages = internal::huge_pages;
    ++team.round;
  }
  team.started.notify_all();
  call(context, 0);
  std::unique_lock lock(team.mutex);
  team.finished.wait(lock, [&] { return team.active == 0; });
}

}  // namespace dynhac
