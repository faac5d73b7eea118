// An engine together with a model of it (ids and weights in plain maps), and the checks that every
// engine test makes after an update.

#ifndef DYNHAC_TESTS_ENGINE_WORLD_H_
#define DYNHAC_TESTS_ENGINE_WORLD_H_

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/check/check.h"
#include "core/check/cut.h"
#include "core/hierarchy/engine.h"
#include "core/hierarchy/last_level.h"
#include "core/selection/select.h"
#include "core/tests/testing.h"

namespace dynhac::testing {

struct BatchData {
  std::vector<int64_t> remove, add, remove_u, remove_v, u, v;
  std::vector<double> w;

  Batch view() const { return {remove, add, remove_u, remove_v, u, v, w}; }
  void edge(int64_t a, int64_t b, double weight) {
    u.push_back(a);
    v.push_back(b);
    w.push_back(weight);
  }
};

// While it lives, other graphs have a last level than usual; see last_level.h.
class Bound {
 public:
  Bound(uint64_t most, uint64_t spare) {
    internal::most_vertices = most;
    internal::spare_vertices = spare;
  }
  ~Bound() {
    internal::most_vertices = most_;
    internal::spare_vertices = spare_;
  }

 private:
  const uint64_t most_ = internal::most_vertices, spare_ = internal::spare_vertices;
};

struct World {
  static constexpr double kResolution = 0x1p-32;

  World(double epsilon, double threshold, uint32_t threads = 1)
      : epsilon(epsilon), threshold(threshold), engine(epsilon, threshold, kResolution, threads) {}

  double epsilon, threshold;
  Engine engine;
  std::set<int64_t> ids;
  std::map<std::pair<int64_t, int64_t>, double> edges;
  int64_t next_id = 0;

  Change apply(const BatchData& batch) {
    Change change = engine.update(batch.view(), nullptr);
    note(batch);
    return change;
  }

  // Notes that the engine has applied a batch.
  void note(const BatchData& batch) {
    for (size_t i = 0; i < batch.remove_u.size(); ++i) {
      edges.erase(std::minmax(batch.remove_u[i], batch.remove_v[i]));
    }
    for (const int64_t id : batch.remove) {
      ids.erase(id);
      std::erase_if(edges,
                    [&](const auto& e) { return e.first.first == id || e.first.second == id; });
    }
    ids.insert(batch.add.begin(), batch.add.end());
    for (size_t i = 0; i < batch.u.size(); ++i) {
      edges[std::minmax(batch.u[i], batch.v[i])] = batch.w[i];
    }
  }

  // The clusters of a watch, reconstructed from its steps alone.
  struct Followed {
    int64_t handle;
    std::optional<double> theta;  // nullopt: the automatic clusters
    uint32_t min_size;
    bool patient = false;
    std::map<int64_t, int64_t> clusters = {};  // by key
  };
  std::vector<Followed> followed;

  void follow(std::optional<double> theta, uint32_t min_size) {
    followed.push_back({engine.add_watch({theta, min_size}), theta, min_size});
    const Number updates = int64_t{3};
    followed.push_back({engine.add_watch({theta, min_size, updates}), theta, min_size, true});
  }

  // The clusters that a watch should have, from a computation that knows nothing of it.
  std::set<std::set<int64_t>> wanted_clusters(const Snapshot& s, const Followed& f) const {
    const size_t n = s.keys.size();
    std::vector<int64_t> labels(n);
    if (f.theta) {
      cut(static_cast<int64_t>(n), s.children, s.min_similarity, {&*f.theta, 1}, labels);
    } else {
      select_clusters(static_cast<int64_t>(n), s.children, s.similarity, s.min_similarity,
                      f.min_size, threshold, labels);
    }
    std::map<int64_t, std::set<int64_t>> clusters;
    for (size_t i = 0; i < n; ++i) {
      if (labels[i] != kNoCluster) clusters[labels[i]].insert(s.keys[i]);
    }
    std::set<std::set<int64_t>> wanted;
    for (const auto& [label, keys] : clusters) {
      if (keys.size() >= f.min_size) wanted.insert(keys);
    }
    return wanted;
  }

  // The steps of every watch must lead to its clusters; with patience, to those that it reports.
  void expect_watches_right() {
    const Snapshot s = engine.snapshot();
    for (Followed& f : followed) {
      const Vec<WatchStep> steps = engine.steps(f.handle);
      engine.drop_steps(f.handle, steps.size());
      for (const WatchStep& step : steps) {
        size_t at = 0;
        for (const WatchStep::Move& move : step.moves) {
          for (; at < move.end; ++at) {
            const auto found = f.clusters.find(step.keys[at]);
            EXPECT_EQ(found == f.clusters.end() ? kNoCluster : found->second, move.from);
            f.clusters.erase(step.keys[at]);
            if (move.to != kNoCluster) f.clusters[step.keys[at]] = move.to;
          }
        }
      }
      std::map<int64_t, std::set<int64_t>> found;
      for (const auto& [key, cluster] : f.clusters) found[cluster].insert(key);
      std::set<std::set<int64_t>> found_sets;
      for (const auto& [cluster, keys] : found) {
        found_sets.insert(keys);
        EXPECT_EQ(engine.members(f.handle, cluster).size(), keys.size());
        EXPECT_EQ(engine.cluster_of(f.handle, *keys.begin()), cluster);
      }
      EXPECT_EQ(engine.watch_clusters(f.handle).ids.size(), found.size());
      EXPECT(f.patient || wanted_clusters(s, f) == found_sets);
    }
  }

  // All checks: the edges are the user's, the caches are right, every merge is good, the watches
  // have the right clusters.
  void expect_right() {
    expect_watches_right();
    const Engine::Export all = engine.export_all();
    for (const std::string& line : all.wrong_caches) EXPECT_EQ(line, std::string());
    EXPECT_EQ(all.snapshot.keys.size(), ids.size());
    std::map<std::pair<int64_t, int64_t>, Weight> found, wanted;
    for (size_t i = 0; i < all.edges.u.size(); ++i) {
      found[std::minmax(all.snapshot.keys[all.edges.u[i]], all.snapshot.keys[all.edges.v[i]])] =
          all.edges.w[i];
    }
    for (const auto& [pair, w] : edges) wanted[pair] = std::llround(w / kResolution);
    EXPECT(found == wanted);
    const Snapshot& s = all.snapshot;
    const CheckResult result =
        check(static_cast<int64_t>(s.keys.size()), all.edges.u, all.edges.v, all.edges.w,
              s.children, s.similarity, s.level, epsilon, threshold, kResolution);
    EXPECT_EQ(result.bad_merges, 0);
    EXPECT_EQ(result.wrong_similarities, 0);
    EXPECT_EQ(result.heavy_edges_left, 0);
  }
};

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_ENGINE_WORLD_H_
