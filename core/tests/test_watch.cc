// Watches when memory runs out: wherever an update fails, its watches are as they were.

#include "core/tests/engine_world.h"
#include "core/tests/plain.h"
#include "core/tests/random_batches.h"

namespace dynhac::testing {
namespace {

bool same(const Engine::WatchState& a, const Engine::WatchState& b) {
  return a.raw.ids == b.raw.ids && a.raw.roots == b.raw.roots && a.raw.next == b.raw.next &&
         a.reported.has_value() == b.reported.has_value();
}

TEST(watch_failures_of_every_allocation) {
  int64_t failures = 0;
  uint64_t seed = base_seed();
  for (const double epsilon : {0.0, 0.1, 1.0}) {
    for (const Weights kind : {Weights::kEqual, Weights::kFew, Weights::kMany}) {
      Random random(++seed);
      World world(epsilon, 0);
      world.follow(0.1, 1);
      for (const uint32_t min_size : {2, 3}) world.follow(std::nullopt, min_size);
      for (int step = 0; step < 12; ++step) {
        const BatchData batch = random_batch(random, world, kind, 40, 6);
        for (int64_t after = 0;; ++after) {
          std::vector<Engine::WatchState> before;
          for (const auto& f : world.followed) before.push_back(world.engine.watch_state(f.handle));
          if (!fails_at(after, [&] { world.engine.update(batch.view(), nullptr); })) break;
          ++failures;
          for (size_t i = 0; i < before.size(); ++i) {
            EXPECT(same(before[i], world.engine.watch_state(world.followed[i].handle)));
          }
        }
        world.note(batch);
        world.next_id += static_cast<int64_t>(batch.add.size());
        world.expect_right();
      }
    }
  }
  EXPECT(failures > 1000);
}

TEST(watch_starts_after_every_failed_allocation) {
  Random random(base_seed());
  World world(0.1, 0);
  world.apply(random_batch(random, world, Weights::kFew, 60, 30));
  int64_t failures = 0;
  const auto start = [&] { world.engine.add_watch({std::nullopt, 2}); };
  for (; fails_at(failures, start); ++failures) EXPECT(world.engine.watch_handles().empty());
  EXPECT(failures > 5);
  EXPECT_EQ(world.engine.watch_handles().size(), size_t{1});
}

}  // namespace
}  // namespace dynhac::testing
