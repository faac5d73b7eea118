// An engine that was saved and loaded equals the original; columns that were tampered with are
// rejected, or are the state of another consistent engine.

#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "core/base/memory.h"
#include "core/hierarchy/state.h"
#include "core/tests/engine_world.h"
#include "core/tests/small_ranges.h"

namespace dynhac::testing {
namespace {

struct Saved {
  std::vector<std::string> names;
  std::vector<SavedColumn> columns;

  StateColumns view() const {
    StateColumns view;
    for (size_t i = 0; i < names.size(); ++i) {
      view[names[i]] = std::visit(
          [](const auto& values) -> StateColumn { return std::span(values.data(), values.size()); },
          columns[i]);
    }
    return view;
  }
  bool operator==(const Saved&) const = default;
};

Saved save(const Engine& engine, uint32_t threads = 1) {
  Saved saved;
  Workers workers(threads);
  saved.names = EngineState::names(engine);
  for (size_t i = 0; i < saved.names.size(); ++i) {
    saved.columns.push_back(EngineState::save(engine, i, workers));
  }
  return saved;
}

EngineParameters parameters(double epsilon, double threshold, uint32_t threads = 1) {
  return {epsilon, threshold, World::kResolution, threads};
}

// Random batches that add, replace and remove vertices and set weights; one vertex becomes a hub.
class Batches {
 public:
  explicit Batches(uint64_t seed, int64_t target) : random_(seed), target_(target) {}

  BatchData next() {
    BatchData batch;
    const int64_t size = static_cast<int64_t>(ids_.size());
    const int64_t removals = random_.below(1 + (size > target_ ? size / 2 : size / 8));
    for (int64_t i = 0; i < removals; ++i) {
      int64_t& id = random_.pick(ids_);
      batch.remove.push_back(id);
      id = ids_.back();
      ids_.pop_back();
    }
    for (int64_t i = random_.below(2 + target_ / 4); i-- > 0;) {
      const int64_t id = next_id_++ * 7919 - 100000;
      batch.add.push_back(id);
      ids_.push_back(id);
    }
    std::map<std::pair<int64_t, int64_t>, double> set;
    for (int64_t k = random_.below(2 + 2 * target_); k-- > 0 && ids_.size() > 1;) {
      const int64_t a = random_.below(3) == 0 ? ids_[0] : random_.pick(ids_);
      const int64_t b = random_.pick(ids_);
      if (a != b) set[std::minmax(a, b)] = 0.125 * static_cast<double>(1 + random_.below(40));
    }
    for (const auto& [pair, w] : set) batch.edge(pair.first, pair.second, w);
    return batch;
  }

 private:
  Random random_;
  int64_t target_, next_id_ = 0;
  std::vector<int64_t> ids_;
};

TEST(state_loaded_engine_updates_like_the_original) {
  uint64_t seed = base_seed();
  for (const double epsilon : {0.0, 0.1, 1.0}) {
    for (const double threshold : {0.0, 0.3}) {
      for (const int64_t target : {10, 60, 300}) {
        Batches batches(++seed, target);
        const Bound bound(seed % 2 ? 32 : 1, 16);
        Engine engine(epsilon, threshold, World::kResolution, 1);
        std::unique_ptr<Engine> twin;
        for (int step = 0; step < 40; ++step) {
          if (step % 5 == 0) {
            const Saved saved = save(engine);
            if (twin) EXPECT(saved == save(*twin));
            twin = EngineState::load(parameters(epsilon, threshold, 1 + step % 2), saved.view());
            EXPECT(saved == save(*twin));
            EXPECT_EQ(twin->export_all().wrong_caches.size(), size_t{0});
          }
          const BatchData batch = batches.next();
          const Change a = engine.update(batch.view(), nullptr);
          const Change b = twin->update(batch.view(), nullptr);
          EXPECT(a.counters == b.counters && a.created == b.created && a.removed == b.removed);
          EXPECT(engine.snapshot() == twin->snapshot());
          if (state().failures > 0) return;
        }
      }
    }
  }
}

Engine& grown(Engine& engine, uint64_t seed, int64_t target, int steps) {
  Batches batches(seed, target);
  for (int step = 0; step < steps; ++step) engine.update(batches.next().view(), nullptr);
  return engine;
}

TEST(state_is_the_same_with_any_number_of_threads) {
  const SmallRanges small(1 << 10);
  for (const int64_t target : {20, 200}) {
    Engine engine(0.1, 0.3, World::kResolution, 1);
    const Saved saved = save(grown(engine, base_seed(), target, 20));
    for (const uint32_t threads : {1, 2, 3, 7}) {
      EXPECT(saved == save(engine, threads));
      const auto twin = EngineState::load(parameters(0.1, 0.3, threads), saved.view());
      EXPECT(saved == save(*twin, threads));
      EXPECT_EQ(twin->export_all().wrong_caches.size(), size_t{0});
    }
  }
}

// A failed update leaves scratch values in records; they must not be saved.
TEST(state_is_the_same_after_a_failed_update) {
  Engine engine(0.1, 0, World::kResolution, 1);
  grown(engine, base_seed(), 80, 20);
  const Saved before = save(engine);
  BatchData bad;
  for (int64_t i = 0; i < 20; ++i) bad.add.push_back(1000000 + i);
  for (int64_t i = 0; i < 19; ++i) bad.edge(1000000 + i, 1000001 + i, 1);
  for (int64_t after = 0; after < 200; ++after) {
    fail_allocation(after);
    try {
      engine.update(bad.view(), nullptr);
      fail_allocation(-1);
      break;
    } catch (const std::bad_alloc&) {
    }
    EXPECT(before == save(engine));
  }
  fail_allocation(-1);
}

TEST(state_of_an_empty_engine) {
  Engine engine(0.1, 0, World::kResolution, 1);
  const Saved saved = save(engine);
  const auto twin = EngineState::load(parameters(0.1, 0), saved.view());
  EXPECT_EQ(twin->size(), size_t{0});
  EXPECT(saved == save(*twin));
  EXPECT_THROWS(std::invalid_argument, EngineState::load(parameters(0.1, 0), StateColumns{}));
}

TEST(state_loads_all_or_nothing_when_memory_runs_out) {
  const SmallRanges small(1 << 10);
  Engine engine(0.1, 0, World::kResolution, 1);
  const Saved saved = save(grown(engine, base_seed(), 60, 20));
  const StateColumns view = saved.view();
  for (const uint32_t threads : {1, 3}) {
    for (int64_t after = 0;; ++after) {
      fail_allocation(after);
      try {
        const auto twin = EngineState::load(parameters(0.1, 0, threads), view);
        fail_allocation(-1);
        EXPECT(saved == save(*twin));
        EXPECT(after > 20);
        break;
      } catch (const std::bad_alloc&) {
      }
    }
  }
  fail_allocation(-1);
}

template <class T>
void tamper(Random& random, Vec<T>& values) {
  if (values.empty() || random.below(20) == 0) {
    if (random.below(2) == 0 || values.empty()) {
      values.push_back(T{});
    } else {
      values.pop_back();
    }
    return;
  }
  T& value = random.pick(values);
  switch (random.below(6)) {
    case 0:
      value = random.pick(values);
      break;
    case 1:
      std::swap(value, random.pick(values));
      break;
    case 2:
      value += static_cast<T>(1);
      break;
    case 3:
      value = static_cast<T>(random.below(static_cast<int64_t>(values.size()) + 3));
      break;
    case 4:
      value = random.below(2) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
      break;
    default:
      if constexpr (std::is_floating_point_v<T>) {
        value = random.below(2) ? std::nan("") : value * 1.5;
      } else {
        value ^= static_cast<T>(T{1} << random.below(sizeof(T) * 8));
      }
  }
}

// An accepted state must be a consistent engine that can be updated. Run this with sanitizers, too.
TEST(state_tampered_with_is_rejected_or_consistent) {
  const SmallRanges small(1 << 10);
  int64_t rejected = 0, accepted = 0;
  for (uint64_t round = 0; round < 6000; ++round) {
    const uint32_t threads = round % 8 == 0 ? 3 : 1;
    Random random(base_seed() + round);
    const uint64_t seed = round / 500;
    const double threshold = seed % 2 ? 0.3 : 0;
    const Bound bound(seed % 4 < 2 ? 32 : 1, 16);
    Engine engine(0.1, threshold, World::kResolution, 1);
    static Saved original;
    if (round % 500 == 0) {
      original = save(grown(engine, seed, seed % 3 == 0 ? 8 : 40, 12));
    }
    Saved saved = original;
    for (int64_t k = random.below(3); k >= 0; --k) {
      std::visit([&](auto& values) { tamper(random, values); }, random.pick(saved.columns));
    }
    std::unique_ptr<Engine> loaded;
    try {
      loaded = EngineState::load(parameters(0.1, threshold, threads), saved.view());
    } catch (const std::invalid_argument&) {
      ++rejected;
      continue;
    }
    ++accepted;
    for (const std::string& line : loaded->export_all().wrong_caches) {
      EXPECT_EQ(line, std::string());
    }
    const Vec<int64_t> keys = loaded->keys();
    for (int step = 0; step < 4; ++step) {
      BatchData batch;
      std::set<std::pair<int64_t, int64_t>> pairs;
      std::set<int64_t> gone;
      for (int i = 0; i < 6 && !keys.empty(); ++i) {
        const int64_t key = random.pick(keys);
        if (loaded->contains(key) && gone.insert(key).second) batch.remove.push_back(key);
      }
      for (int i = 0; i < 12 && !keys.empty(); ++i) {
        const int64_t a = random.pick(keys), b = random.pick(keys);
        if (a == b || gone.contains(a) || gone.contains(b)) continue;
        if (!loaded->contains(a) || !loaded->contains(b)) continue;
        if (pairs.insert(std::minmax(a, b)).second) batch.edge(a, b, random.uniform() + 0.01);
      }
      loaded->update(batch.view(), nullptr);
    }
    const Vec<int64_t> left = loaded->keys();
    BatchData rest;
    rest.remove.assign(left.begin(), left.end());
    loaded->update(rest.view(), nullptr);
    EXPECT_EQ(loaded->size(), size_t{0});
    EXPECT_EQ(loaded->export_all().wrong_caches.size(), size_t{0});
    if (state().failures > 0) return;
  }
  EXPECT(rejected > 3000);
  EXPECT(accepted > 100);
}

}  // namespace
}  // namespace dynhac::testing
