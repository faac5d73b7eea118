#include "core/hierarchy/engine.h"

#include <algorithm>
#include <chrono>

#include "core/base/partition.h"
#include "core/hierarchy/stage.h"

namespace dynhac {

namespace {

// The edges of a level that an update will touch, about.
uint64_t edges_to_do(const Level& level, const LevelChanges& changes) {
  uint64_t edges = changes.fresh.size() + changes.deltas.size();
  for (const Vertex v : changes.removed) edges += level.cold[v].live;
  for (const Changed& c : changes.changed) edges += level.cold[c.v].live;
  return edges;
}

constexpr size_t kBuild = 1000;  // new vertices or edges: from here on a batch is a build

}  // namespace

Engine::Engine(double epsilon, double threshold, double resolution, uint32_t threads)
    : resolution_(resolution),
      threshold_(threshold),
      rule_(Rule::of(epsilon, threshold, resolution)),
      workers_(threads),
      level_update_(rule_, nodes_, workers_),
      stage_(std::make_unique<Stage>(*this)) {
  levels_.push_back(std::make_unique<Level>(&arena_));
}

Engine::~Engine() = default;

Change Engine::update(const Batch& batch, Poll* poll, const std::optional<Number>& clock,
                      const std::function<void()>& on_read) {
  const auto started = std::chrono::steady_clock::now();
  const auto lock = lock_.write();
  const HugePages huge(batch.add.size() >= kBuild);
  const Workers::Session session(workers_);
  Change change;
  if (++epoch_ == 0) {  // after 2^32 updates: no record may seem to belong to this one
    for (auto& level : levels_) level->forget_epochs();
    nodes_.forget_epochs();
    epoch_ = 1;
  }
  for (auto& level : levels_) level->begin(epoch_);
  last_level_.begin();
  nodes_.begin(epoch_);
  total_before_ = total_;
  level_update_.begin(poll);
  bool changed;
  try {
    begin_phase(poll, phases::kReading, batch.u.size());
    stage_->run(batch, poll);
    if (on_read) on_read();
    changed = !pending_.empty();
    const uint64_t edges = edges_to_do(*levels_[0], pending_);
    begin_phase(poll, phases::kBuilding, edges);
    level_update_.expect_work(0, edges);
    uint64_t points = 0, vertices = 0;
    LevelChanges *in = &pending_, *out = &next_;
    for (uint32_t i = 0; changed && i < levels_.size(); ++i) {
      vertices += levels_[i]->alive() - in->removed.size();
      if (i == 0) points = vertices;
      const LevelKind kind = last_level_.next(i, points, vertices);
      if (in->empty() && !kind.anew) continue;
      if (edges >= kBuild) {
        const uint64_t left = std::min(edges_to_do(*levels_[i], *in), edges);
        level_update_.expect_work(edges - left, left);
      }
      if (i + 1 == levels_.size()) {
        levels_.push_back(std::make_unique<Level>(&arena_));
        levels_.back()->begin(epoch_);
      }
      const Level* top = i + 2 < levels_.size() ? levels_[i + 2].get() : nullptr;
      level_update_.run(i, kind, *levels_[i], *levels_[i + 1], top, *in, *out);
      in->clear();
      std::swap(in, out);
    }
    collect(change);
    if (changed) prepare_watches({version_ + 1, clock});
    if (poll != nullptr) poll->end();
  } catch (...) {
    rollback();
    throw;
  }
  commit_watches();
  for (auto& level : levels_) level->commit();
  while (levels_.size() > 1 && levels_.back()->alive() == 0) levels_.pop_back();
  if (last_level_.index() >= levels_.size()) last_level_.set(kNone);
  nodes_.commit();
  erased_.clear();
  inserted_.clear();
  version_ += changed;
  change.counters = level_update_.counters();
  change.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return change;
}

void Engine::rollback() noexcept {
  abandon_watches();
  for (auto& level : levels_) level->rollback();
  while (levels_.size() > 1 && levels_.back()->alive() == 0) levels_.pop_back();
  last_level_.rollback();
  nodes_.rollback();
  for (const Id& id : inserted_) ids_.erase(id.key);
  for (const Id& id : erased_) ids_.insert(id.key, id.v);  // has room: it was in the map before
  erased_.clear();
  inserted_.clear();
  total_ = total_before_;
  pending_.clear();
  next_.clear();
  level_update_.reset();
}

void Engine::collect(Change& change) {
  auto version = [&](const Node& node, bool passed_on) {
    return NodeVersion{node.id, node.similarity * resolution_, node.size, passed_on};
  };
  nodes_.differences([&](const Node& before, const Node& now) {
    const bool passed_on = before.size > 0 && now.size > 0;
    if (before.size > 0) change.removed.push_back(version(before, passed_on));
    if (now.size > 0) change.created.push_back(version(now, passed_on));
  });
  // Nodes in new slots.
  const std::span<const Node> added = nodes_.added();
  constexpr size_t kRange = size_t{1} << 13;
  const size_t ranges = Workers::ranges(added.size(), kRange);
  Vec<Vec<NodeVersion>> created(ranges > 1 ? ranges : 0);
  workers_.for_ranges_numbered(
      added.size(), kRange, [&](size_t range, size_t begin, size_t end, uint32_t hand) {
        Vec<NodeVersion>& list = hand == 0 ? change.created : created[range];
        for (size_t i = begin; i < end; ++i) {
          if (added[i].size > 0 && !added[i].is_leaf()) list.push_back(version(added[i], false));
        }
      });
  append_all(workers_, change.created, created);
}

size_t Engine::size() const {
  const auto lock = lock_.read();
  return ids_.size();
}

bool Engine::contains(int64_t key) const {
  const auto lock = lock_.read();
  return ids_.contains(key);
}

int64_t Engine::version() const {
  const auto lock = lock_.read();
  return version_;
}

Vec<NodeRef> Engine::ordered_leaves() const {
  const Level& level = *levels_[0];
  Vec<NodeRef> leaves;
  leaves.reserve(level.alive());
  for (Vertex v = 0; v < level.slots(); ++v) {
    if (level.lives(v)) leaves.push_back(level.cold[v].node);
  }
  auto earlier = [&](NodeRef a, NodeRef b) { return nodes_[a].id < nodes_[b].id; };
  if (!std::is_sorted(leaves.begin(), leaves.end(), earlier)) {
    std::sort(leaves.begin(), leaves.end(), earlier);
  }
  return leaves;
}

Vec<int64_t> Engine::keys() const {
  const auto lock = lock_.read();
  return keys_locked();
}

Vec<int64_t> Engine::keys_locked() const {
  Vec<int64_t> keys;
  for (const NodeRef leaf : ordered_leaves()) keys.push_back(keys_[nodes_[leaf].left]);
  return keys;
}

Snapshot Engine::snapshot() const {
  const auto lock = lock_.read();
  return snapshot_locked();
}

Snapshot Engine::snapshot_locked() const {
  const Vec<NodeRef> leaves = ordered_leaves();
  // From child to parent, the smallest linkage of the subtree never increases and the size grows:
  // this order puts children first, and the merges above the theta of any cut before the others.
  Vec<NodeRef> merges;
  merges.reserve(leaves.size());
  for (NodeRef n = 0; n < nodes_.slots(); ++n) {
    if (nodes_[n].size > 0 && !nodes_[n].is_leaf()) merges.push_back(n);
  }
  std::sort(merges.begin(), merges.end(), [&](NodeRef a, NodeRef b) {
    const Node &x = nodes_[a], &y = nodes_[b];
    if (x.least_merge != y.least_merge) return x.least_merge > y.least_merge;
    return x.size != y.size ? x.size < y.size : x.id < y.id;
  });

  Snapshot s;
  s.version = version_;
  Vec<uint32_t> index(nodes_.slots());
  s.keys.reserve(leaves.size());
  for (const NodeRef leaf : leaves) {
    index[leaf] = static_cast<uint32_t>(s.keys.size());
    s.keys.push_back(keys_[nodes_[leaf].left]);
  }
  const size_t m = merges.size();
  s.children.reserve(2 * m);
  s.similarity.reserve(m);
  s.min_similarity.reserve(m);
  s.size.reserve(m);
  s.node_ids.reserve(m);
  s.level.reserve(m);
  for (size_t j = 0; j < m; ++j) {
    const Node& node = nodes_[merges[j]];
    index[merges[j]] = static_cast<uint32_t>(leaves.size() + j);
    s.children.push_back(index[node.left]);
    s.children.push_back(index[node.right]);
    s.similarity.push_back(node.similarity * resolution_);
    s.min_similarity.push_back(node.least_merge * resolution_);
    s.size.push_back(node.size);
    s.node_ids.push_back(node.id);
    s.level.push_back(static_cast<int32_t>(node.level));
  }
  number_merges_of_last_level(merges, s);
  return s;
}

// A merge of the last level is judged with those above its similarity made: it gets a level of its
// own, in the order of falling similarity. Merges of equal similarity share one.
void Engine::number_merges_of_last_level(std::span<const NodeRef> merges, Snapshot& s) const {
  if (last_level_.index() == kNone) return;
  struct Merge {
    double similarity;
    uint32_t index;
  };
  Vec<Merge> order;
  Vec<double> similarity(s.level.size());  // rounding must not put a merge above one below it
  const auto n = static_cast<int64_t>(s.keys.size());
  for (uint32_t j = 0; j < merges.size(); ++j) {
    const Node& node = nodes_[merges[j]];
    if (node.level != last_level_.index()) continue;
    similarity[j] = node.similarity;
    for (const int64_t child : {s.children[2 * j], s.children[2 * j + 1]}) {
      if (child >= n && nodes_[merges[child - n]].level == node.level) {
        similarity[j] = std::min(similarity[j], similarity[child - n]);
      }
    }
    order.push_back({similarity[j], j});
  }
  std::sort(order.begin(), order.end(), [](const Merge& x, const Merge& y) {
    return x.similarity != y.similarity ? x.similarity > y.similarity : x.index < y.index;
  });
  int32_t level = static_cast<int32_t>(last_level_.index());
  for (size_t i = 0; i < order.size(); ++i) {
    level += i > 0 && order[i].similarity != order[i - 1].similarity;
    s.level[order[i].index] = level;
  }
}

std::pair<Vec<int64_t>, EdgeList> Engine::edges_with_keys() const {
  const auto lock = lock_.read();
  return {keys_locked(), edges_locked()};
}

EdgeList Engine::edges_locked() const {
  const Level& level = *levels_[0];
  const Vec<NodeRef> leaves = ordered_leaves();
  Vec<uint32_t> index(level.slots());
  size_t ends = 0;
  for (uint32_t i = 0; i < leaves.size(); ++i) {
    index[nodes_[leaves[i]].left] = i;
    ends += level.cold[nodes_[leaves[i]].left].live;
  }
  EdgeList list;
  list.u.reserve(ends / 2);
  list.v.reserve(ends / 2);
  list.w.reserve(ends / 2);
  for (uint32_t i = 0; i < leaves.size(); ++i) {
    for (const Entry& e : level.edges(nodes_[leaves[i]].left)) {
      if (index[e.neighbour] <= i) continue;
      list.u.push_back(i);
      list.v.push_back(index[e.neighbour]);
      list.w.push_back(e.weight);
    }
  }
  return list;
}

Vec<std::pair<int64_t, int64_t>> Engine::level_sizes() const {
  const auto lock = lock_.read();
  Vec<std::pair<int64_t, int64_t>> sizes;
  for (const auto& level : levels_) {
    int64_t ends = 0;
    for (const Cold& c : level->cold) ends += c.live;
    sizes.push_back({level->alive(), ends / 2});
  }
  return sizes;
}

size_t Engine::memory() const {
  const auto lock = lock_.read();
  size_t bytes = arena_.memory() + nodes_.memory() + keys_.capacity() * sizeof(int64_t) +
                 ids_.capacity() * (sizeof(int64_t) + sizeof(Vertex));
  for (const auto& level : levels_) bytes += level->memory();
  return bytes;
}

Engine::Export Engine::export_all(Poll* poll) const {
  const auto lock = lock_.read();
  Export all{snapshot_locked(), edges_locked(), audit(poll)};
  if (poll != nullptr) poll->end();
  return all;
}

}  // namespace dynhac
