// The watches of the engine: updates and queries.

#include <algorithm>
#include <stdexcept>

#include "core/hierarchy/engine.h"

namespace dynhac {

// All watches share one difference. What they prepare takes effect when the update is committed.
void Engine::prepare_watches(int64_t version) {
  if (watches_.empty()) return;
  difference_.find(nodes_);
  replaced_.clear();
  for (const Id& id : erased_) {
    const Vertex* now = ids_.find(id.key);
    if (now != nullptr) {
      replaced_.push_back({levels_[0]->cold[id.v].node, levels_[0]->cold[*now].node});
    }
  }
  for (auto& [handle, watch] : watches_) {
    watch->prepare(difference_, {nodes_, keys_, replaced_}, version);
  }
}

Watch& Engine::watch(int64_t handle) const {
  for (const auto& [other, watch] : watches_) {
    if (other == handle) return *watch;
  }
  throw std::out_of_range("no such watch");
}

int64_t Engine::add_watch(double theta, uint32_t min_size) {
  const auto lock = lock_.write();
  auto watch = std::make_unique<Watch>(theta, resolution_, min_size);
  watch->start({nodes_, keys_, {}}, version_);
  watches_.emplace_back(next_watch_, std::move(watch));
  return next_watch_++;
}

int64_t Engine::restore_watch(double theta, uint32_t min_size, const WatchClusters& clusters) {
  const auto lock = lock_.write();
  auto watch = std::make_unique<Watch>(theta, resolution_, min_size);
  watch->start({nodes_, keys_, {}}, version_);
  Vec<NodeRef> roots;
  for (const int64_t root : clusters.roots) {
    if (root < 0 || root >= nodes_.slots()) throw std::invalid_argument("root of a cluster");
    roots.push_back(static_cast<NodeRef>(root));
  }
  if (clusters.ids.size() != roots.size()) throw std::invalid_argument("clusters without roots");
  watch->restore(roots, clusters.ids, clusters.next);
  watches_.emplace_back(next_watch_, std::move(watch));
  return next_watch_++;
}

void Engine::remove_watch(int64_t handle) noexcept {
  const auto lock = lock_.write();
  std::erase_if(watches_, [&](const auto& entry) { return entry.first == handle; });
}

bool Engine::steps_waiting() const {
  const auto lock = lock_.read();
  return std::ranges::any_of(watches_,
                             [](const auto& entry) { return !entry.second->steps().empty(); });
}

Vec<int64_t> Engine::watch_handles() const {
  const auto lock = lock_.read();
  Vec<int64_t> handles;
  for (const auto& [handle, watch] : watches_) handles.push_back(handle);
  return handles;
}

Vec<WatchStep> Engine::steps(int64_t handle) const {
  const auto lock = lock_.read();
  return watch(handle).steps();
}

void Engine::drop_steps(int64_t handle, size_t count) {
  const auto lock = lock_.write();
  watch(handle).drop_steps(std::min(count, watch(handle).steps().size()));
}

Engine::WatchLabels Engine::watch_labels(int64_t handle) const {
  const auto lock = lock_.read();
  Vec<int64_t> cluster(levels_[0]->slots(), kNoCluster);  // by vertex
  Vec<NodeRef> stack;
  watch(handle).clusters().for_each([&](NodeRef root, int64_t id) {
    nodes_.for_each_leaf(root, stack, [&](const Node& leaf) { cluster[leaf.left] = id; });
  });
  WatchLabels labels;
  for (const NodeRef leaf : ordered_leaves()) {
    labels.keys.push_back(keys_[nodes_[leaf].left]);
    labels.clusters.push_back(cluster[nodes_[leaf].left]);
  }
  return labels;
}

Engine::WatchClusters Engine::watch_clusters(int64_t handle) const {
  const auto lock = lock_.read();
  const Watch& w = watch(handle);
  Vec<std::pair<int64_t, NodeRef>> sorted;
  w.clusters().for_each([&](NodeRef root, int64_t id) { sorted.push_back({id, root}); });
  std::sort(sorted.begin(), sorted.end());
  WatchClusters clusters;
  for (const auto& [id, root] : sorted) {
    clusters.ids.push_back(id);
    clusters.sizes.push_back(nodes_[root].size);
    clusters.roots.push_back(root);
  }
  clusters.next = w.next_cluster();
  return clusters;
}

int64_t Engine::cluster_of(int64_t handle, int64_t key) const {
  const auto lock = lock_.read();
  const FlatMap<int64_t>& clusters = watch(handle).clusters();
  const Vertex v = vertex_of(key);
  if (const int64_t* id = clusters.find(levels_[0]->cold[v].node)) return *id;
  for (const NodeRef n : merges_above(v)) {
    if (const int64_t* id = clusters.find(n)) return *id;
  }
  return kNoCluster;
}

Vec<int64_t> Engine::members(int64_t handle, int64_t cluster) const {
  const auto lock = lock_.read();
  NodeRef root = kNone;
  watch(handle).clusters().for_each([&](NodeRef n, int64_t id) {
    if (id == cluster) root = n;
  });
  Vec<std::pair<int64_t, int64_t>> found;  // rank of insertion, key
  Vec<NodeRef> stack;
  if (root == kNone) return {};
  nodes_.for_each_leaf(root, stack,
                       [&](const Node& leaf) { found.push_back({leaf.id, keys_[leaf.left]}); });
  std::sort(found.begin(), found.end());
  Vec<int64_t> keys;
  for (const auto& [rank, key] : found) keys.push_back(key);
  return keys;
}

}  // namespace dynhac
