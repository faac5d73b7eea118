// A model of points together with a simulation of its rules, and the checks that every test of the
// model makes after an update.

#ifndef DYNHAC_TESTS_POINT_WORLD_H_
#define DYNHAC_TESTS_POINT_WORLD_H_

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/points/point_model.h"
#include "core/tests/plain.h"
#include "core/tests/point_simulation.h"
#include "core/tests/test_indexes.h"
#include "core/tests/testing.h"

namespace dynhac::testing {

struct PointSetup {
  PointParameters rules = {};
  bool text = false;  // ids are texts
  TimeKind kind = TimeKind::kNone;
  IndexKind index = IndexKind::kScan;
};

inline std::string text_of(int64_t id) {
  std::string text = std::string("p").append(std::to_string(id));
  if (id % 3 == 1) text += "\u00e4\u4e16";
  if (id % 5 == 2) text += std::string(200, 'x');
  return text;
}

struct PointWorld {
  static constexpr double kResolution = 0x1p-32;
  static constexpr size_t kDimension = 2;

  explicit PointWorld(const PointSetup& setup, IndexChoice own_index = {},
                      const Similarity* other = nullptr)
      : rules(setup.rules),
        text(setup.text),
        kind(setup.kind),
        chooser(setup.index),
        model(engine, ids, other == nullptr ? similarity : *other, chooser,
              {rules.n_neighbors, rules.least_weight, rules.repair},
              Window(rules.max_points,
                     rules.max_age ? std::optional(number(*rules.max_age)) : std::nullopt),
              std::move(own_index)),
        simulation(rules) {}

  PointParameters rules;
  bool text;
  TimeKind kind;  // of the timestamps in the next batches
  Engine engine{0.1, 0.0, kResolution, 1};
  IdTable ids;
  SimilarityRule similarity{SimilarityRule::Kind::kInverse};
  TestChooser chooser;
  PointModel model;
  PointSimulation simulation;
  int64_t updates = 0;

  Number number(double x) const {
    if (kind == TimeKind::kFloats || x != std::floor(x)) return x;
    return static_cast<int64_t>(x);
  }

  IdColumn column(const Ids& keys) const {
    IdColumn column;
    column.text = text;
    for (const int64_t key : keys) {
      if (text) {
        column.texts.push_back(text_of(key));
      } else {
        column.ints.push_back(key);
      }
    }
    return column;
  }

  Strings shown(const IdColumn& column) const {
    if (column.text) return plain(column.texts);
    Strings strings;
    for (const int64_t id : column.ints) strings.push_back(std::to_string(id));
    return strings;
  }
  Strings shown(const Ids& keys) const { return shown(column(keys)); }

  // A batch, and what it refers to.
  struct BatchOf {
    Vec<float> vectors;
    Vec<int64_t> times;
    PointBatch batch;
  };

  std::unique_ptr<BatchOf> batch_of(const PointStep& step) const {
    auto data = std::make_unique<BatchOf>();
    for (const auto& row : step.vectors) {
      data->vectors.insert(data->vectors.end(), row.begin(), row.end());
    }
    for (const double time : step.times) {
      data->times.push_back(kind == TimeKind::kFloats ? order_of(time)
                                                      : static_cast<int64_t>(time));
    }
    PointBatch& batch = data->batch;
    batch.deleted = column(step.deleted);
    batch.inserted = column(step.inserted);
    batch.vectors = data->vectors;
    batch.dimension = kDimension;
    if (!step.inserted.empty()) batch.time_kind = kind;
    batch.times = data->times;
    if (step.clock) batch.clock = number(*step.clock);
    return data;
  }

  PointStep random_step(Random& random) const {
    PointStep step;
    std::set<int64_t> used;
    const double leaving = random.chance(0.2) ? 0.5 : 0.1;
    for (const auto& [id, point] : simulation.points) {
      used.insert(id);
      if (random.chance(leaving)) step.deleted.push_back(id);
    }
    random.shuffle(step.deleted);
    const int64_t count = random.chance(0.3) ? 1 : random.below(7);
    const double now = 0.5 * static_cast<double>(updates);
    for (int64_t i = 0; i < count; ++i) {
      int64_t id = random.below(80) - (text ? 0 : 5);
      if (i < std::ssize(step.deleted) && random.chance(0.3)) {
        id = step.deleted[static_cast<size_t>(i)];  // replaced
      } else if (used.contains(id)) {
        continue;
      }
      used.insert(id);
      step.inserted.push_back(id);
      step.vectors.emplace_back();
      for (size_t j = 0; j < kDimension; ++j) {
        step.vectors.back().push_back(static_cast<float>(random.below(5) - 2));
      }
      if (kind == TimeKind::kNone) continue;
      const double time = now + 0.5 * static_cast<double>(random.below(24) - 16);
      step.times.push_back(kind == TimeKind::kFloats ? time : std::floor(time));
    }
    if (kind != TimeKind::kNone && random.chance(0.2)) {
      step.clock = now + 0.5 * static_cast<double>(random.below(9) - 4);
    }
    return step;
  }

  void apply(const PointStep& step) {
    const PointChange change = model.update(batch_of(step)->batch, nullptr);
    ++updates;
    const PointSimulation::Result result = simulation.update(step);
    EXPECT_EQ(change.expired.text, ids.used());
    EXPECT_EQ(change.repaired.text, ids.used());
    EXPECT_EQ(shown(change.expired), shown(result.expired));
    EXPECT_EQ(shown(change.repaired), shown(result.repaired));
  }

  std::map<Pair, Weight> edges() const {
    const auto [keys, list] = engine.edges_with_keys();
    std::map<int64_t, int64_t> id_of;
    for (const auto& [id, point] : simulation.points) {
      id_of[text ? key_of(ids, text_of(id)) : id] = id;
    }
    std::map<Pair, Weight> found;
    for (size_t i = 0; i < list.u.size(); ++i) {
      const int64_t u = id_of.at(keys[static_cast<size_t>(list.u[i])]);
      const int64_t v = id_of.at(keys[static_cast<size_t>(list.v[i])]);
      EXPECT(found.insert({std::minmax(u, v), list.w[i]}).second);
    }
    return found;
  }

  void expect_right() const {
    EXPECT_EQ(model.version(), updates);
    EXPECT_EQ(engine.size(), simulation.points.size());
    std::map<Pair, Weight> expected;
    for (const auto& [pair, weight] : simulation.edges) {
      expected[pair] = std::llround(weight / kResolution);
    }
    EXPECT(edges() == expected);
    for (const std::string& line : engine.export_all().wrong_caches) {
      EXPECT_EQ(line, std::string());
    }
    expect_points_right();
    expect_index_right();
  }

  void expect_points_right() const {
    const PointTable* table = model.table();
    if (table == nullptr) {
      EXPECT(simulation.points.empty());
      return;
    }
    EXPECT_EQ(table->size(), simulation.points.size());
    EXPECT_EQ(table->next_arrival(), simulation.next_arrival);
    if (!text) EXPECT_EQ(table->next_id(), simulation.next_id);
    EXPECT_EQ(shown(model.ids_of(table->in_order())), shown(simulation.in_order()));
    for (const auto& [id, point] : simulation.points) {
      const Ids slot = plain(model.find(column({id})));
      EXPECT_EQ(slot, Ids{point.slot});
      EXPECT_EQ(table->arrival(point.slot), point.arrival);
      EXPECT_EQ(plain(table->vectors_of(slot)), point.vector);
      const Number time = time_from(table->kind(), table->time(point.slot));
      EXPECT_EQ(std::visit([](auto x) { return static_cast<double>(x); }, time), point.time);
    }
    const auto& clock = model.window().clock();
    EXPECT_EQ(clock.has_value(), simulation.clock.has_value());
    if (clock && simulation.clock) {
      EXPECT_EQ(std::visit([](auto x) { return static_cast<double>(x); }, *clock),
                *simulation.clock);
    }
  }

  // An index that is not lost holds the points of the table.
  void expect_index_right() const {
    if (model.index_lost() || model.index().index == nullptr) return;
    EXPECT(model.index().index->intact());
    Contents expected;
    for (const auto& [id, point] : simulation.points) expected[point.slot] = point.vector;
    EXPECT(dynamic_cast<TestIndex&>(*model.index().index).contents() == expected);
  }

  // Everything that a failed update must leave as it was. Keys of text ids are not shown: an update
  // that fails uses some up.
  std::string state() const {
    std::ostringstream out;
    out.precision(17);
    out << "version " << model.version() << ", engine " << engine.version() << "\n";
    if (text) out << ids.size() << " texts, used " << ids.used() << "\n";
    if (const auto& clock = model.window().clock()) {
      std::visit([&](auto x) { out << "clock " << x << " " << sizeof x << "\n"; }, *clock);
    }
    if (const PointTable* table = model.table()) {
      const PointTable::State points = table->state();
      out << "next " << points.next_arrival << " " << points.next_id << ", kind "
          << static_cast<int>(points.kind) << ", top " << table->top() << ", arrivals "
          << show(points.arrival) << ", times " << show(points.times) << "\n";
      const Vec<int64_t> used = table->used();
      out << show(used) << show(shown(model.ids_of(used))) << show(points.vectors) << "\n";
    }
    const Engine::Export all = engine.export_all();
    const Snapshot& s = all.snapshot;
    out << show(text ? plain(ids.texts(s.keys)) : shown(plain(s.keys))) << show(s.children)
        << show(s.similarity) << show(s.node_ids) << show(s.level) << "\n";
    out << show(all.edges.u) << show(all.edges.v) << show(all.edges.w) << show(all.wrong_caches);
    return out.str();
  }
};

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_POINT_WORLD_H_
