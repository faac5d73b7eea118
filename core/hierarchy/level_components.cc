// The last level: bags are whole components, and each is merged completely.
//
// A component is connected by heavy edges, so all edges that leave it are light, and stay light
// whatever merges. In it the mutual best pairs are merged until no heavy edge is left: exact
// clustering, which is good for every epsilon. A merge is judged with the clusters as they are by
// then. So there is nothing to certify: a component is run again whenever anything in it has
// changed.
//
// The merges may be repeated in the order of falling similarity. A merge of x and y with similarity
// l was one of a mutual best pair, and so was every other one. Then no cluster that exists when all
// merges above l have been made has a linkage above l to x or y: see Engine::snapshot, which
// numbers the merges in this order.

#include "core/hierarchy/level_update.h"
#include "core/hierarchy/subgraph_run.h"

namespace dynhac {

// Unites the groups of every component in which something has changed. searching_ is the queue of
// the search. An edge that is heavy no longer has both its ends in the queue, so all parts of a
// component that was cut are found.
void LevelUpdate::find_components(bool all) {
  for (const Vertex v : dirty_) mark(v);
  list_created();
  for (const auto& [v, old_size] : in_->changed) {
    mark(v);
    list(v);
    if (low_->hot[v].size == old_size) continue;
    for (const Entry& e : low_->edges(v)) list(e.neighbour);
    work(low_->cold[v].used);
  }
  for (const auto& [a, b, w] : touched_) {
    list(a);
    list(b);
  }
  for (Vertex v = 0; all && v < low_->slots(); ++v) {
    if (low_->lives(v)) list(v);
  }
  for (size_t i = 0; i < searching_.size(); ++i) {
    const Vertex v = searching_[i];
    if (!low_->lives(v)) continue;
    bool heavy = false;
    const uint32_t size = low_->hot[v].size;
    for (const Entry& e : low_->edges(v)) {
      if (!rule_.is_heavy(linkage(e.weight, size, low_->hot[e.neighbour].size))) continue;
      heavy = true;
      list(e.neighbour);
      unite(element(v), element(e.neighbour));
    }
    // A finished vertex that stays as it was has nothing to do.
    if (heavy || low_->role[v].image != kNone || low_->cold[v].state == State::kCreated) mark(v);
    work(4 + 4 * size_t{low_->cold[v].used});
  }
}

void LevelUpdate::run_component(Bag& bag, uint32_t hand) {
  const uint32_t n = bag.members_end - bag.members;
  const Vertex* members = members_.data() + bag.members;
  MemberResult* results = results_.data() + bag.members;
  Merge* merges = merges_.data() + bag.members;
  SubgraphRun run(exact_, Workers::is_caller(hand) ? poll_ : nullptr, kLargestTotal);
  for (uint32_t i = 0; i < n; ++i) {
    const Vertex v = members[i];
    run.add_vertex(v, low_->hot[v].size, low_->cold[v].least_merge, low_->cold[v].live);
  }
  for (uint32_t i = 0; i < n; ++i) {
    const Vertex v = members[i];
    Heaviest heaviest;
    for (const Entry& e : low_->edges(v)) {
      const Hot& other = low_->hot[e.neighbour];
      heaviest.offer(v, e.neighbour, linkage(e.weight, low_->hot[v].size, other.size));
      const uint32_t j = other.slot - bag.members;
      if (j < n && j != i) run.add_edge(i, j, e.weight);
    }
    runs_[hand].edges_read += low_->cold[v].used;
    results[i] = {kInfinity, heaviest};
  }
  run.run();
  Vec<uint32_t> ref(n);  // by the member that a cluster is named after
  for (uint32_t i = 0; i < n; ++i) ref[i] = i;
  for (const SubgraphRun::Step& step : run.steps()) {
    const uint32_t a = low_->hot[step.a].slot - bag.members;
    const uint32_t b = low_->hot[step.b].slot - bag.members;
    merges[bag.merged] = {
        ref[a],         ref[b],          static_cast<uint32_t>(step.size_a + step.size_b),
        kNone,          step.similarity, step.least,
        step.similarity};
    ref[a] = n + bag.merged++;
    results[a].hi = results[b].hi = 0;
  }
}

}  // namespace dynhac
