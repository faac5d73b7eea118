// The watches of the engine: updates and queries.

#include <algorithm>
#include <stdexcept>

#include "core/hierarchy/engine.h"
#include "core/watch/automatic_rule.h"
#include "core/watch/theta_rule.h"

namespace dynhac {

namespace {

// The clusters of a watch in the middle of an update.
class PreparedClusters : public RawClusters {
 public:
  PreparedClusters(const Watch& watch, const NodeStore& nodes, std::span<const int64_t> keys)
      : watch_(watch), nodes_(nodes), keys_(keys) {}

  void members(std::span<const int64_t> clusters, Vec<Member>& found) const override {
    Vec<NodeRef> stack;
    watch_.for_each_prepared([&](NodeRef root, int64_t id) {
      if (!std::ranges::binary_search(clusters, id)) return;
      nodes_.for_each_leaf(root, stack,
                           [&](const Node& leaf) { found.push_back({id, keys_[leaf.left]}); });
    });
  }

 private:
  const Watch& watch_;
  const NodeStore& nodes_;
  const std::span<const int64_t> keys_;
};

}  // namespace

// All watches share one difference. What they prepare takes effect when the update is committed.
void Engine::prepare_watches(const Moment& moment) {
  if (watches_.empty()) return;
  difference_.find(nodes_);
  replaced_.clear();
  Vec<int64_t> added, removed;  // without those replaced
  for (const Id& id : erased_) {
    const Vertex* now = ids_.find(id.key);
    if (now != nullptr) {
      replaced_.push_back({levels_[0]->cold[id.v].node, levels_[0]->cold[*now].node});
    } else {
      removed.push_back(id.key);
    }
  }
  const bool patient = std::ranges::any_of(watches_, [](const Watched& w) { return !!w.patience; });
  if (patient) {
    Vec<int64_t> erased;
    for (const Id& id : erased_) erased.push_back(id.key);
    std::ranges::sort(erased);
    std::ranges::sort(removed);
    for (const Id& id : inserted_) {
      if (!std::ranges::binary_search(erased, id.key)) added.push_back(id.key);
    }
    std::ranges::sort(added);
  }
  for (const Watched& w : watches_) {
    w.raw->prepare(difference_, {nodes_, keys_, replaced_}, moment);
    if (w.patience == nullptr) continue;
    const Number now =
        w.in_time ? moment.clock.value_or(Number(int64_t{0})) : Number(moment.version);
    w.patience->prepare(w.raw->prepared_step(), {added, removed},
                        PreparedClusters(*w.raw, nodes_, keys_), moment, now);
  }
}

void Engine::commit_watches() noexcept {
  for (const Watched& w : watches_) {
    w.raw->commit();
    if (w.patience == nullptr) continue;
    w.patience->commit();
    w.raw->drop_steps(w.raw->steps().size());
  }
}

void Engine::abandon_watches() noexcept {
  for (const Watched& w : watches_) {
    w.raw->abandon();
    if (w.patience != nullptr) w.patience->abandon();
  }
}

const Engine::Watched& Engine::watch(int64_t handle) const {
  for (const Watched& w : watches_) {
    if (w.handle == handle) return w;
  }
  throw std::out_of_range("no such watch");
}

Engine::Watched Engine::make_watch(const WatchParameters& parameters) const {
  Watched made{next_watch_, parameters.in_time, nullptr, nullptr};
  std::unique_ptr<FlatRule> rule;
  if (parameters.theta) {
    rule = std::make_unique<ThetaRule>(*parameters.theta, resolution_);
  } else {
    rule = std::make_unique<AutomaticRule>(resolution_, parameters.min_size);
  }
  made.raw = std::make_unique<Watch>(std::move(rule), parameters.min_size);
  made.raw->start({nodes_, keys_, {}}, {version_, {}});
  if (parameters.patience) {
    made.patience = std::make_unique<Patience>(*parameters.patience);
    const Vec<WatchStep>& steps = made.raw->steps();
    made.patience->start(steps.empty() ? WatchStep() : steps[0], made.raw->next_cluster());
    made.raw->drop_steps(steps.size());
  }
  return made;
}

int64_t Engine::add_watch(const WatchParameters& parameters) {
  const auto lock = lock_.write();
  watches_.push_back(make_watch(parameters));
  return next_watch_++;
}

int64_t Engine::restore_watch(const WatchParameters& parameters, const WatchState& state) {
  const auto lock = lock_.write();
  Watched made = make_watch(parameters);
  Vec<NodeRef> roots;
  for (const int64_t root : state.raw.roots) {
    if (root < 0 || root >= nodes_.slots()) throw std::invalid_argument("root of a cluster");
    roots.push_back(static_cast<NodeRef>(root));
  }
  if (state.raw.ids.size() != roots.size()) throw std::invalid_argument("clusters without roots");
  made.raw->restore(roots, state.raw.ids, state.raw.next);
  if (state.reported.has_value() != (made.patience != nullptr)) {
    throw std::invalid_argument("patience without reported clusters");
  }
  if (made.patience != nullptr) {
    Vec<Patience::Cluster> raw;
    const WatchClusters clusters = raw_clusters(*made.raw);
    for (size_t i = 0; i < clusters.ids.size(); ++i) {
      raw.push_back({clusters.ids[i], clusters.sizes[i]});
    }
    Vec<int64_t> labels;
    for (const int64_t key : state.reported->held_key) {
      const Vertex* v = ids_.find(key);
      if (v == nullptr) throw std::invalid_argument("a point held that does not exist");
      labels.push_back(raw_cluster(*made.raw, *v));
    }
    const auto version = made.in_time ? std::nullopt : std::optional<int64_t>(version_);
    made.patience->restore(*state.reported, raw, labels, version);
  }
  watches_.push_back(std::move(made));
  return next_watch_++;
}

void Engine::remove_watch(int64_t handle) noexcept {
  const auto lock = lock_.write();
  std::erase_if(watches_, [&](const Watched& w) { return w.handle == handle; });
}

bool Engine::steps_waiting() const {
  const auto lock = lock_.read();
  return std::ranges::any_of(watches_, [](const Watched& w) { return !w.steps().empty(); });
}

Vec<int64_t> Engine::watch_handles() const {
  const auto lock = lock_.read();
  Vec<int64_t> handles;
  for (const Watched& w : watches_) handles.push_back(w.handle);
  return handles;
}

Vec<WatchStep> Engine::steps(int64_t handle) const {
  const auto lock = lock_.read();
  return watch(handle).steps();
}

void Engine::drop_steps(int64_t handle, size_t count) {
  const auto lock = lock_.write();
  const Watched& w = watch(handle);
  count = std::min(count, w.steps().size());
  if (w.patience == nullptr) {
    w.raw->drop_steps(count);
  } else {
    w.patience->drop_steps(count);
  }
}

Engine::WatchLabels Engine::watch_labels(int64_t handle) const {
  const auto lock = lock_.read();
  const Watched& w = watch(handle);
  Vec<int64_t> cluster(levels_[0]->slots(), kNoCluster);  // by vertex
  Vec<NodeRef> stack;
  w.raw->clusters().for_each([&](NodeRef root, int64_t id) {
    nodes_.for_each_leaf(root, stack, [&](const Node& leaf) { cluster[leaf.left] = id; });
  });
  WatchLabels labels;
  for (const NodeRef leaf : ordered_leaves()) {
    const Vertex v = nodes_[leaf].left;
    labels.keys.push_back(keys_[v]);
    labels.clusters.push_back(w.reported(keys_[v], cluster[v]));
  }
  return labels;
}

Engine::WatchClusters Engine::raw_clusters(const Watch& watch) const {
  Vec<std::pair<int64_t, NodeRef>> sorted;
  watch.clusters().for_each([&](NodeRef root, int64_t id) { sorted.push_back({id, root}); });
  std::sort(sorted.begin(), sorted.end());
  WatchClusters clusters;
  for (const auto& [id, root] : sorted) {
    clusters.ids.push_back(id);
    clusters.sizes.push_back(nodes_[root].size);
    clusters.roots.push_back(root);
  }
  clusters.next = watch.next_cluster();
  return clusters;
}

Engine::WatchClusters Engine::watch_clusters(int64_t handle) const {
  const auto lock = lock_.read();
  const Watched& w = watch(handle);
  if (w.patience == nullptr) return raw_clusters(*w.raw);
  WatchClusters reported;
  for (const Patience::Cluster& cluster : w.patience->clusters()) {
    reported.ids.push_back(cluster.id);
    reported.sizes.push_back(cluster.size);
  }
  return reported;
}

Engine::WatchState Engine::watch_state(int64_t handle) const {
  const auto lock = lock_.read();
  const Watched& w = watch(handle);
  WatchState state{raw_clusters(*w.raw), std::nullopt};
  if (w.patience != nullptr) state.reported = w.patience->state();
  return state;
}

int64_t Engine::raw_cluster(const Watch& watch, Vertex v) const {
  const FlatMap<int64_t>& clusters = watch.clusters();
  if (const int64_t* id = clusters.find(levels_[0]->cold[v].node)) return *id;
  for (const NodeRef n : merges_above(v)) {
    if (const int64_t* id = clusters.find(n)) return *id;
  }
  return kNoCluster;
}

int64_t Engine::cluster_of(int64_t handle, int64_t key) const {
  const auto lock = lock_.read();
  const Watched& w = watch(handle);
  return w.reported(key, raw_cluster(*w.raw, vertex_of(key)));
}

Vec<int64_t> Engine::members(int64_t handle, int64_t cluster) const {
  const auto lock = lock_.read();
  const Watched& w = watch(handle);
  Vec<int64_t> raw{cluster};  // the raw clusters that can have members, ascending
  if (w.patience != nullptr) raw = w.patience->usual_of(cluster);
  Vec<std::pair<int64_t, int64_t>> found;  // rank of insertion, key
  Vec<NodeRef> stack;
  w.raw->clusters().for_each([&](NodeRef root, int64_t id) {
    if (!std::ranges::binary_search(raw, id)) return;
    nodes_.for_each_leaf(root, stack, [&](const Node& leaf) {
      const int64_t key = keys_[leaf.left];
      if (w.reported(key, id) == cluster) found.push_back({leaf.id, key});
    });
  });
  if (w.patience != nullptr) {
    w.patience->for_each_held([&](int64_t key, int64_t reported) {
      const NodeRef leaf = levels_[0]->cold[*ids_.find(key)].node;
      if (reported == cluster) found.push_back({nodes_[leaf].id, key});
    });
  }
  std::sort(found.begin(), found.end());
  Vec<int64_t> keys;
  for (const auto& [rank, key] : found) keys.push_back(key);
  return keys;
}

}  // namespace dynhac
