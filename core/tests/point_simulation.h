// The documented rules of a model of points, in plain maps: every search sorts all points.

#ifndef DYNHAC_TESTS_POINT_SIMULATION_H_
#define DYNHAC_TESTS_POINT_SIMULATION_H_

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/tests/plain.h"

namespace dynhac::testing {

// Deletions, then insertions. Times and clock are small multiples of 1/2.
struct PointStep {
  Ids deleted, inserted;
  std::vector<std::vector<float>> vectors;
  std::vector<double> times;  // empty without timestamps
  std::optional<double> clock;
};

struct PointParameters {
  size_t n_neighbors = 3;
  double least_weight = 0x1p-33;
  bool repair = true;
  std::optional<int64_t> max_points;
  std::optional<double> max_age;
};

class PointSimulation {
 public:
  struct Point {
    std::vector<float> vector;
    int64_t slot, arrival;
    double time;
  };
  struct Result {
    Ids expired;   // the oldest first
    Ids repaired;  // by slot
  };

  explicit PointSimulation(const PointParameters& rules) : rules_(rules) {}

  std::map<int64_t, Point> points;  // by id
  std::map<Pair, double> edges;     // the smaller id first
  std::optional<double> clock;
  int64_t next_arrival = 0, next_id = 0;

  Result update(const PointStep& step) {
    for (const int64_t id : step.inserted) next_id = std::max(next_id, id + 1);
    advance_clock(step);

    std::set<int64_t> taken;
    for (const auto& [id, point] : points) taken.insert(point.slot);
    std::map<int64_t, Point> leaving;
    for (const int64_t id : step.deleted) leaving.insert(points.extract(id));

    std::vector<Candidate> queue;
    for (const auto& [id, point] : points)
      queue.push_back({point.time, point.arrival, id, nullptr});
    for (size_t i = 0; i < step.inserted.size(); ++i) {
      const double time = step.times.empty() ? 0 : step.times[i];
      queue.push_back({time, next_arrival++, step.inserted[i], &step.vectors[i]});
    }
    Result result;
    for (const Candidate& old : expire(queue)) {
      result.expired.push_back(old.id);
      if (old.vector == nullptr) leaving.insert(points.extract(old.id));
    }
    const std::set<int64_t> neighbours = remove_edges(leaving);

    std::sort(queue.begin(), queue.end(),
              [](const Candidate& a, const Candidate& b) { return a.arrival < b.arrival; });
    Ids fresh;
    for (const Candidate& one : queue) {
      if (one.vector == nullptr) continue;
      int64_t slot = 0;
      while (taken.contains(slot)) ++slot;
      taken.insert(slot);
      points[one.id] = {*one.vector, slot, one.arrival, one.time};
      fresh.push_back(one.id);
    }
    for (const int64_t id : fresh) join(id);
    if (rules_.repair) repair(neighbours, result);
    return result;
  }

  // Ids in the order of arrival.
  Ids in_order() const {
    std::map<int64_t, int64_t> by_arrival;
    for (const auto& [id, point] : points) by_arrival[point.arrival] = id;
    Ids ids;
    for (const auto& [arrival, id] : by_arrival) ids.push_back(id);
    return ids;
  }

 private:
  struct Candidate {
    double time;
    int64_t arrival, id;
    const std::vector<float>* vector;  // nullptr: a point that is there already
  };

  void advance_clock(const PointStep& step) {
    if (step.clock) clock = std::max(clock.value_or(*step.clock), *step.clock);
    for (const double time : step.times) clock = std::max(clock.value_or(time), time);
  }

  // Takes the points that expire from the queue, the oldest first.
  std::vector<Candidate> expire(std::vector<Candidate>& queue) const {
    std::sort(queue.begin(), queue.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.time, a.arrival) < std::tie(b.time, b.arrival);
    });
    std::vector<Candidate> expired;
    const auto too_old = [&](const Candidate& one) {
      return rules_.max_age && clock && one.time < *clock - *rules_.max_age;
    };
    const auto too_many = [&] {
      return rules_.max_points && std::ssize(queue) > *rules_.max_points;
    };
    while (!queue.empty() && (too_old(queue.front()) || too_many())) {
      expired.push_back(queue.front());
      queue.erase(queue.begin());
    }
    return expired;
  }

  // Returns the points that lose an edge and stay.
  std::set<int64_t> remove_edges(const std::map<int64_t, Point>& leaving) {
    std::set<int64_t> neighbours;
    for (const auto& [pair, weight] : edges) {
      const bool first = leaving.contains(pair.first), second = leaving.contains(pair.second);
      if (first && !second) neighbours.insert(pair.second);
      if (second && !first) neighbours.insert(pair.first);
    }
    std::erase_if(edges, [&](const auto& edge) {
      return leaving.contains(edge.first.first) || leaving.contains(edge.first.second);
    });
    return neighbours;
  }

  void repair(const std::set<int64_t>& neighbours, Result& result) {
    std::map<int64_t, int64_t> degree, by_slot;
    for (const auto& [pair, weight] : edges) ++degree[pair.first], ++degree[pair.second];
    for (const int64_t id : neighbours) {
      const auto edges_left = static_cast<size_t>(degree[id]);
      if (2 * edges_left < rules_.n_neighbors && edges_left < points.size() - 1) {
        by_slot[points.at(id).slot] = id;
      }
    }
    for (const auto& [slot, id] : by_slot) {
      result.repaired.push_back(id);
      join(id);
    }
  }

  void join(int64_t id) {
    const Point& own = points.at(id);
    std::vector<std::tuple<double, int64_t, int64_t>> others;
    for (const auto& [other, point] : points) {
      if (other == id) continue;
      double sum = 0;
      for (size_t i = 0; i < own.vector.size(); ++i) {
        const double side = double{own.vector[i]} - double{point.vector[i]};
        sum += side * side;
      }
      others.emplace_back(std::sqrt(sum), point.slot, other);
    }
    std::sort(others.begin(), others.end());
    others.resize(std::min(others.size(), rules_.n_neighbors));
    for (const auto& [distance, slot, other] : others) {
      const double weight = 1 / (1 + distance);
      if (weight >= rules_.least_weight) edges[std::minmax(id, other)] = weight;
    }
  }

  const PointParameters rules_;
};

}  // namespace dynhac::testing

#endif  // DYNHAC_TESTS_POINT_SIMULATION_H_
