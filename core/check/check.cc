#include "core/check/check.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/memory.h"
#include "core/check/forest.h"
#include "core/check/replay.h"

namespace dynhac {
namespace {

using replay::Graph;
using replay::Merges;

std::string name_edge(const Graph& graph, size_t i) {
  return "edge (" + std::to_string(graph.u[i]) + ", " + std::to_string(graph.v[i]) + ")";
}

void validate(const Graph& graph) {
  expect_length("v", graph.v.size(), graph.u.size());
  expect_length("w", graph.w.size(), graph.u.size());
  int64_t total = 0;
  for (size_t i = 0; i < graph.u.size(); ++i) {
    const int64_t a = graph.u[i], b = graph.v[i], weight = graph.w[i];
    if (a < 0 || a >= graph.n || b < 0 || b >= graph.n) {
      reject(name_edge(graph, i) + " has an end outside 0.." + std::to_string(graph.n - 1));
    }
    if (a == b) reject(name_edge(graph, i) + " is a loop");
    if (weight <= 0) {
      reject("weight of " + name_edge(graph, i) + " is " + std::to_string(weight) +
             "; weights must be > 0");
    }
    if (weight > std::numeric_limits<int64_t>::max() - total) {
      reject("the sum of the weights does not fit into 64 bits");
    }
    total += weight;
  }
}

void validate(const Merges& merges, const Vec<uint32_t>& parent) {
  const size_t count = merges.children.size() / 2;
  expect_length("similarity", merges.similarity.size(), count);
  expect_length("level", merges.level.size(), count);
  const size_t leaves = parent.size() - count;
  for (size_t j = 0; j < count; ++j) {
    if (merges.level[j] < 0) {
      reject("level of node " + std::to_string(leaves + j) + " is " +
             std::to_string(merges.level[j]) + "; levels must be >= 0");
    }
    const uint32_t above = parent[leaves + j];
    if (above != kNoParent && merges.level[above - leaves] < merges.level[j]) {
      reject("node " + std::to_string(leaves + j) + " is of a higher level than its parent " +
             std::to_string(above));
    }
  }
}

void expect_finite(const char* name, double value, bool positive) {
  if (!std::isfinite(value) || value < 0 || (positive && value == 0)) {
    reject(std::string(name) + " is " + std::to_string(value) + "; it must be finite and " +
           (positive ? "> 0" : ">= 0"));
  }
}

}  // namespace

CheckResult check(int64_t n, std::span<const int64_t> u, std::span<const int64_t> v,
                  std::span<const int64_t> w, std::span<const int64_t> children,
                  std::span<const double> similarity, std::span<const int32_t> level,
                  double epsilon, double threshold, double resolution, Poll* poll) {
  expect_finite("epsilon", epsilon, false);
  expect_finite("threshold", threshold, false);
  expect_finite("resolution", resolution, true);
  const Graph graph{n, u, v, w};
  const Merges merges{children, similarity, level};
  Vec<uint32_t> parent = forest_parents(n, children);
  validate(graph);
  validate(merges, parent);
  begin_phase(poll, phases::kVerifying, children.size() / 2);
  const CheckResult result =
      replay::Replay(graph, merges, std::move(parent), {epsilon, threshold, resolution}, poll)
          .run();
  if (poll != nullptr) poll->end();
  return result;
}

}  // namespace dynhac
