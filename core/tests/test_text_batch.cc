// Batches of changes of a graph whose ids are texts: engine and ids change together or not at all.

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/hierarchy/text_batch.h"
#include "core/tests/plain.h"
#include "core/tests/testing.h"

namespace dynhac {
namespace {

using testing::fails_at;
using testing::Ids;
using testing::key_of;
using testing::plain;
using testing::Strings;
using testing::texts_of;

using TextPair = std::pair<std::string, std::string>;

std::string vertex(int64_t number) {
  return std::string("v").append(std::to_string(number));
}

struct GraphStep {
  Strings remove, add;
  std::vector<TextPair> unset;
  std::vector<std::pair<TextPair, double>> edges;
};

// A batch, and the weights that it refers to.
struct BatchOf {
  explicit BatchOf(const GraphStep& step) {
    batch.remove = texts_of(step.remove);
    batch.add = texts_of(step.add);
    for (const auto& [u, v] : step.unset) {
      batch.remove_u.push_back(u);
      batch.remove_v.push_back(v);
    }
    for (const auto& [pair, weight] : step.edges) {
      batch.u.push_back(pair.first);
      batch.v.push_back(pair.second);
      weights.push_back(weight);
    }
    batch.w = weights;
  }
  BatchOf(const BatchOf&) = delete;
  BatchOf& operator=(const BatchOf&) = delete;

  std::vector<double> weights;
  TextBatch batch;
};

// A graph, and the same vertices and edges in plain containers.
struct TextGraph {
  static constexpr double kResolution = 0x1p-32;

  Engine engine{0.1, 0.0, kResolution, 1};
  IdTable ids;
  std::set<std::string> vertices;
  std::map<TextPair, double> edges;

  void update(const GraphStep& step) {
    apply_text_batch(engine, ids, BatchOf(step).batch, nullptr);
  }

  void follow(const GraphStep& step) {
    for (const TextPair& pair : step.unset) edges.erase(std::minmax(pair.first, pair.second));
    for (const std::string& id : step.remove) {
      vertices.erase(id);
      std::erase_if(edges,
                    [&](const auto& e) { return e.first.first == id || e.first.second == id; });
    }
    vertices.insert(step.add.begin(), step.add.end());
    for (const auto& [pair, weight] : step.edges) {
      edges[std::minmax(pair.first, pair.second)] = weight;
    }
  }

  GraphStep random_step(Random& random) const {
    GraphStep step;
    std::set<std::string> after;
    for (const std::string& id : vertices) {
      if (random.chance(0.15)) {
        step.remove.push_back(id);
      } else {
        after.insert(id);
      }
    }
    for (const auto& [pair, weight] : edges) {
      if (random.chance(0.1)) step.unset.push_back(pair);
    }
    for (int64_t i = random.below(5); i > 0; --i) {
      const std::string id = random.chance(0.3) && !step.remove.empty()
                                 ? random.pick(step.remove)  // replaced
                                 : vertex(random.below(40));
      if (after.insert(id).second) step.add.push_back(id);
    }
    std::set<TextPair> listed;
    for (size_t i = 0; i < after.size(); ++i) {
      const std::string &u = random.pick(after), &v = random.pick(after);
      if (u == v || !listed.insert(std::minmax(u, v)).second) continue;
      step.edges.push_back({{u, v}, 0.25 * static_cast<double>(1 + random.below(8))});
    }
    return step;
  }

  void expect_right() const {
    const auto [keys, list] = engine.edges_with_keys();
    const Strings texts = plain(ids.texts(keys));
    EXPECT(std::set<std::string>(texts.begin(), texts.end()) == vertices);
    std::map<TextPair, double> found;
    for (size_t i = 0; i < list.u.size(); ++i) {
      const TextPair pair =
          std::minmax(texts[static_cast<size_t>(list.u[i])], texts[static_cast<size_t>(list.v[i])]);
      found[pair] = static_cast<double>(list.w[i]) * kResolution;
    }
    EXPECT(found == edges);
    EXPECT(engine.export_all().wrong_caches.empty());
    for (int64_t i = 0; i < 40; ++i) {
      const std::string id = vertex(i);
      EXPECT_EQ(key_of(ids, id) != IdTable::kUnknownKey, vertices.contains(id));
    }
  }

  // Everything but the keys, of which a batch that fails uses some up.
  std::string state() const {
    std::ostringstream out;
    out.precision(17);
    const Engine::Export all = engine.export_all();
    const Snapshot& s = all.snapshot;
    out << s.version << " " << ids.size() << " " << ids.used() << "\n"
        << testing::show(plain(ids.texts(s.keys))) << testing::show(s.children)
        << testing::show(s.similarity) << testing::show(s.node_ids) << "\n"
        << testing::show(all.edges.u) << testing::show(all.edges.v) << testing::show(all.edges.w);
    return out.str();
  }
};

TEST(text_batch_through_random_updates) {
  for (uint64_t round = 0; round < 30; ++round) {
    Random random(testing::base_seed() + round);
    TextGraph graph;
    for (int i = 0; i < 40; ++i) {
      const GraphStep step = graph.random_step(random);
      std::map<std::string, int64_t> replaced;
      for (const std::string& id : step.remove) replaced[id] = key_of(graph.ids, id);
      graph.update(step);
      graph.follow(step);
      graph.expect_right();
      for (const std::string& id : step.add) {
        if (replaced.contains(id)) EXPECT_EQ(key_of(graph.ids, id), replaced[id]);
      }
    }
    graph.update({});
    EXPECT_EQ(graph.ids.size(), graph.vertices.size());
  }
}

TEST(text_batch_after_failed_allocations) {
  for (uint64_t round = 0; round < 10; ++round) {
    std::string expected;
    bool failed = true;
    for (int64_t after = -1; failed; ++after) {
      Random random(testing::base_seed() + round);
      TextGraph graph;
      for (uint64_t i = 0; i < round; ++i) {
        const GraphStep step = graph.random_step(random);
        graph.update(step);
        graph.follow(step);
      }
      graph.ids.forget_retired();  // a batch does so first, also one that fails
      const GraphStep step = graph.random_step(random);
      const BatchOf data(step);
      const std::string before = graph.state();
      const auto apply = [&] { apply_text_batch(graph.engine, graph.ids, data.batch, nullptr); };
      if (after < 0) {  // first without a failure
        apply();
        expected = graph.state();
        continue;
      }
      failed = fails_at(after, apply);
      if (failed) {
        EXPECT_EQ(graph.state(), before);
        graph.expect_right();
        apply();
      }
      graph.follow(step);
      graph.expect_right();
      EXPECT_EQ(graph.state(), expected);
    }
  }
}

TEST(text_batch_rejects) {
  TextGraph graph;
  const auto reject = [&](const GraphStep& step, const std::string& kind, int64_t index) {
    const std::string before = graph.state();
    bool rejected = false;
    try {
      graph.update(step);
    } catch (const BatchError& error) {
      rejected = true;
      EXPECT_EQ(std::string(error.kind), kind);
      EXPECT_EQ(error.index, index);
    }
    EXPECT(rejected);
    EXPECT_EQ(graph.state(), before);
    graph.expect_right();
  };
  reject({{"v1"}, {}, {}, {}}, "unknown_remove", 0);
  reject({{}, {"v1"}, {}, {{{"v1", "v2"}, 1.0}}}, "unknown_endpoint", 0);
  EXPECT(!graph.ids.used());  // a rejected batch does not make ids texts
  const GraphStep first{{}, {"v1", "v2", "v3"}, {}, {{{"v1", "v2"}, 1.0}, {{"v2", "v3"}, 2.0}}};
  graph.update(first);
  graph.follow(first);
  EXPECT(graph.ids.used());
  reject({{}, {"v4", "v4"}, {}, {}}, "duplicate_add", 1);
  reject({{}, {"v4", "v1"}, {}, {}}, "present", 1);
  reject({{"v1", "v1"}, {"v4"}, {}, {}}, "duplicate_remove", 1);
  reject({{"v1", "v5"}, {"v4"}, {}, {}}, "unknown_remove", 1);
  reject({{"v1"}, {"v4"}, {{"v1", "v3"}}, {}}, "unknown_edge", 0);
  reject({{}, {"v4"}, {{"v1", "v4"}}, {}}, "unknown_edge_end", 0);
  reject({{"v1"}, {"v4"}, {}, {{{"v4", "v1"}, 1.0}}}, "unknown_endpoint", 0);
  reject({{}, {"v4"}, {}, {{{"v4", "v4"}, 1.0}}}, "self_loop", 0);
  reject({{}, {"v4"}, {}, {{{"v4", "v1"}, -1.0}}}, "weight_invalid", 0);
  EXPECT_EQ(graph.ids.size(), 3);
}

TEST(text_batch_keeps_texts_that_a_watch_needs) {
  TextGraph graph;
  graph.update({{}, {"a", "b"}, {}, {{{"a", "b"}, 1.0}}});
  const int64_t watch = graph.engine.add_watch({0.5, 1});
  const Ids keys = plain(graph.engine.keys());
  graph.update({{"a"}, {}, {}, {}});
  graph.update({});
  EXPECT_EQ(plain(graph.ids.texts(keys)), (Strings{"a", "b"}));
  EXPECT_EQ(key_of(graph.ids, "a"), IdTable::kUnknownKey);
  graph.engine.drop_steps(watch, graph.engine.steps(watch).size());
  graph.update({});
  EXPECT_EQ(graph.ids.size(), 1);
}

}  // namespace
}  // namespace dynhac
