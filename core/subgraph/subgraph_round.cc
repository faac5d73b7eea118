#include "core/subgraph/subgraph_round.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/hierarchy/subgraph_run.h"
#include "core/hierarchy/types.h"

namespace dynhac {
namespace {

void expect_finite(const char* name, double value) {
  if (!std::isfinite(value) || value < 0) {
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                "; it must be finite and >= 0");
  }
}

// Appends the results of one part after the other.
class Collector {
 public:
  Collector(RoundResult& out, SubgraphRun& run, const Rule& rule)
      : out_(out), run_(run), rule_(rule) {}

  // names: of the vertices as they were given. outside: the parts of the outside vertices.
  void add(int64_t part, const Vec<int64_t>& names, const Vec<int64_t>& outside) {
    finished_.resize(run_.active());
    images_.clear();
    for (uint32_t slot = 0; slot < run_.active(); ++slot) {
      if (run_.image(slot) != slot) continue;
      finished_[slot] = !rule_.is_heavy(run_.largest_linkage(slot));
      images_.emplace_back(run_.name(slot), slot);
    }
    std::sort(images_.begin(), images_.end());
    add_vertices(names);
    add_merges();
    add_edges(part, outside);
  }

 private:
  using Named = std::pair<int64_t, uint32_t>;  // a name and its slot

  void add_vertices(const Vec<int64_t>& names) {
    RoundResult::Vertices& to = out_.vertices;
    for (uint32_t slot = 0; slot < run_.active(); ++slot) {
      const uint32_t image = run_.image(slot);
      to.id.push_back(names[slot]);
      to.image.push_back(run_.name(image));
      to.size.push_back(run_.size(image));
      to.least.push_back(run_.least(image));
      to.finished.push_back(finished_[image]);
    }
  }

  void add_merges() {
    RoundResult::Merges& to = out_.merges;
    int64_t seq = 0;
    for (const SubgraphRun::Step& step : run_.steps()) {
      to.a.push_back(step.a);
      to.b.push_back(step.b);
      to.size_a.push_back(step.size_a);
      to.size_b.push_back(step.size_b);
      to.w.push_back(step.w);
      to.similarity.push_back(step.similarity);
      to.least.push_back(step.least);
      to.seq.push_back(seq++);
    }
  }

  void add_edges(int64_t part, const Vec<int64_t>& outside) {
    for (const auto& [name, slot] : images_) {
      if (finished_[slot]) continue;
      ends_.clear();
      run_.neighbours(slot).for_each([&, name = name](uint32_t end, const Weight&) {
        const bool wanted = run_.is_active(end) ? name < run_.name(end) && !finished_[end]
                                                : part < outside[end - run_.active()];
        if (wanted) ends_.emplace_back(run_.name(end), end);
      });
      std::sort(ends_.begin(), ends_.end());
      for (const auto& [other, end] : ends_) {
        const bool inside = run_.is_active(end);
        RoundResult::Edges& to = out_.edges;
        to.part.push_back(part);
        to.other_part.push_back(inside ? part : outside[end - run_.active()]);
        to.u.push_back(name);
        to.v.push_back(other);
        to.w.push_back(*run_.weight(slot, end));
        to.size_u.push_back(run_.size(slot));
        to.size_v.push_back(inside ? run_.size(end) : 0);
        to.least_u.push_back(run_.least(slot));
        to.least_v.push_back(inside ? run_.least(end) : 0);
      }
    }
  }

  RoundResult& out_;
  SubgraphRun& run_;
  const Rule rule_;
  Vec<uint8_t> finished_;  // by slot, of images
  Vec<Named> images_, ends_;
};

}  // namespace

RoundResult subgraph_round(const HalfEdges& edges, double epsilon, double heavy, Poll* poll) {
  expect_finite("epsilon", epsilon);
  expect_finite("heavy", heavy);
  const Rule rule{.keep = (1 + epsilon) * Rule::kRounding, .make = 1, .heavy = heavy};
  PartTable table(edges, poll);
  SubgraphRun run(rule, poll);
  RoundResult out;
  Collector collector(out, run, rule);
  Vec<int64_t> names;
  for (uint32_t part = 0; part < table.parts(); ++part) {
    run.clear();
    const Vec<int64_t> outside = table.fill(run, part);
    names.clear();
    for (uint32_t slot = 0; slot < run.active(); ++slot) names.push_back(run.name(slot));
    run.run();
    collector.add(table.name(part), names, outside);
  }
  return out;
}

}  // namespace dynhac
