#include "core/watch/watch.h"

#include <algorithm>
#include <stdexcept>

namespace dynhac {

void Watch::start(const Leaves& leaves, const Moment& moment) {
  forget();
  const NodeStore& nodes = leaves.nodes;
  Vec<uint8_t> has_parent(nodes.slots(), 0);
  for (const Node& node : nodes.nodes) {
    if (node.size == 0 || node.is_leaf()) continue;
    has_parent[node.left] = has_parent[node.right] = 1;
  }
  for (NodeRef n = 0; n < nodes.slots(); ++n) {
    if (nodes[n].size > 0 && !has_parent[n]) stack_.push_back({n, kNone});
  }
  std::reverse(stack_.begin(), stack_.end());
  while (!stack_.empty()) {
    const NodeRef n = stack_.back().n;
    stack_.pop_back();
    if (joins(nodes[n])) {
      Atom& whole = atom(n);
      whole.size = nodes[n].size;
      whole.root_now = n;
      add_new(n, whole.size);
    } else {
      stack_.push_back({nodes[n].right, kNone});
      stack_.push_back({nodes[n].left, kNone});
    }
  }
  match();
  report(leaves, moment);
  commit();
}

void Watch::restore(std::span<const NodeRef> roots, std::span<const int64_t> clusters,
                    int64_t next_cluster) {
  constexpr int64_t kMostIds = int64_t{1} << 62;
  if (next_cluster < 0 || next_cluster > kMostIds) throw std::invalid_argument("next cluster");
  FlatMap<int64_t> restored;
  restored.reserve(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!cluster_of_.contains(roots[i])) throw std::invalid_argument("a root of no cluster");
    if (clusters[i] < 0 || clusters[i] >= next_cluster) throw std::invalid_argument("cluster id");
    if (!restored.insert(roots[i], clusters[i]).second) throw std::invalid_argument("two roots");
  }
  if (restored.size() != cluster_of_.size()) throw std::invalid_argument("clusters are missing");
  Vec<int64_t> ids(clusters.begin(), clusters.end());
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    throw std::invalid_argument("two clusters of one id");
  }
  cluster_of_.swap(restored);
  next_cluster_ = next_cluster;
  steps_.clear();
}

void Watch::prepare(const Difference& difference, const Leaves& leaves, const Moment& moment) {
  forget();
  walk<false>(difference);
  walk<true>(difference);
  complete_atoms(difference, leaves);
  list_clusters(difference);
  match();
  report(leaves, moment);
}

void Watch::commit() noexcept {
  if (!prepared_) return;
  for (const Cluster& c : before_) cluster_of_.erase(c.root);
  for (const Cluster& c : now_) cluster_of_.insert(c.root, c.id);  // reserved by report()
  next_cluster_ = next_cluster_after_;
  if (!step_.empty()) steps_.push_back(std::move(step_));  // reserved by report()
  prepared_ = false;
}

void Watch::forget() {
  prepared_ = false;
  step_ = WatchStep();
  recycle(atoms_);
  recycle(stack_);
  recycle(leaf_stack_);
  recycle(roots_before_);
  recycle(roots_now_);
  recycle(before_);
  recycle(now_);
  recycle(overlaps_);
  recycle(transfers_);
  for (FlatMap<uint32_t>* map : {&atom_of_, &before_of_, &now_of_}) {
    // The time to clear is proportional to the capacity: one large update must not slow down all
    // later ones.
    if (map->capacity() > 1024) {
      FlatMap<uint32_t>().swap(*map);
    } else {
      map->clear();
    }
  }
}

Watch::Atom& Watch::atom(NodeRef n) {
  const auto [at, added] = atom_of_.insert(n, static_cast<uint32_t>(atoms_.size()));
  if (added) atoms_.push_back({n, 0});
  return atoms_[*at];
}

// Walks the dirty nodes of one of the two dendrograms; finds cluster roots and the atoms below.
template <bool kNow>
void Watch::walk(const Difference& difference) {
  auto record = [&](NodeRef n) -> const Node& {
    return kNow ? difference.now(n) : difference.before(n);
  };
  Vec<NodeRef>& roots = kNow ? roots_now_ : roots_before_;
  for (const Difference::Touched& t : difference.touched()) {
    if (!(kNow ? t.top_now : t.top_before)) continue;
    // The node is within one cluster before and now, and neither its leaves nor its parent changed.
    // (If it does not join on one of the sides, a clean parent joins on neither: the smallest
    // linkage of the parent is unchanged and at most the node's. The walk starts without a root.)
    if (t.top_before && t.top_now && !t.restructured && joins(t.before) &&
        joins(difference.now(t.n))) {
      continue;
    }
    stack_.push_back({t.n, kNone});
    while (!stack_.empty()) {
      auto [n, root] = stack_.back();
      stack_.pop_back();
      const Node& node = record(n);
      if (root == kNone && joins(node)) {
        root = n;
        roots.push_back(n);
      }
      if (difference.of(n) != nullptr && !node.is_leaf()) {
        stack_.push_back({node.right, root});
        stack_.push_back({node.left, root});
      } else if (root != kNone) {
        Atom& a = atom(n);
        a.size = node.size;
        (kNow ? a.root_now : a.root_before) = root;
        (kNow ? a.seen_now : a.seen_before) = true;
      }
    }
  }
}

// An atom below a dirty node in only one of the dendrograms is a tree of its own in the other.
void Watch::complete_atoms(const Difference& difference, const Leaves& leaves) {
  for (Atom& a : atoms_) {
    if (difference.of(a.n) != nullptr) continue;  // a leaf that was added or removed
    if (!a.seen_before) roots_before_.push_back(a.root_before = a.n);
    if (!a.seen_now) roots_now_.push_back(a.root_now = a.n);
  }
  for (const auto& [old_leaf, new_leaf] : leaves.replaced) {
    Atom& old = atom(old_leaf);
    atom(new_leaf).root_before = old.root_before;
    old.size = 0;
  }
}

void Watch::list_clusters(const Difference& difference) {
  for (const NodeRef root : roots_before_) {
    const int64_t* id = cluster_of_.find(root);
    if (id == nullptr) continue;
    before_of_.insert(root, static_cast<uint32_t>(before_.size()));
    before_.push_back({root, difference.before(root).size, *id});
  }
  for (const NodeRef root : roots_now_) add_new(root, difference.now(root).size);
}

void Watch::add_new(NodeRef root, uint32_t size) {
  if (size < min_size_) return;
  now_of_.insert(root, static_cast<uint32_t>(now_.size()));
  now_.push_back({root, size});
}

void Watch::match() {
  for (const Atom& a : atoms_) {
    const uint32_t* old = a.root_before == kNone ? nullptr : before_of_.find(a.root_before);
    const uint32_t* now = a.root_now == kNone ? nullptr : now_of_.find(a.root_now);
    if (old != nullptr && now != nullptr && a.size > 0) overlaps_.push_back({*old, *now, a.size});
  }
  sum_pairs(overlaps_);
  std::sort(overlaps_.begin(), overlaps_.end(), [&](const Overlap& a, const Overlap& b) {
    if (a.size != b.size) return a.size > b.size;
    return a.old != b.old ? before_[a.old].id < before_[b.old].id : a.now < b.now;
  });
  for (const Overlap& o : overlaps_) {
    Cluster &old = before_[o.old], &now = now_[o.now];
    if (old.continued || now.id != kNoCluster) continue;
    old.continued = true;
    now.id = old.id;
    now.size_before = old.size;
  }
  // New ids for the rest, the largest cluster first.
  Vec<uint32_t> born;
  for (uint32_t i = 0; i < now_.size(); ++i) {
    if (now_[i].id == kNoCluster) born.push_back(i);
  }
  std::stable_sort(born.begin(), born.end(),
                   [&](uint32_t a, uint32_t b) { return now_[a].size > now_[b].size; });
  next_cluster_after_ = next_cluster_;
  for (const uint32_t i : born) now_[i].id = next_cluster_after_++;
}

void Watch::report(const Leaves& leaves, const Moment& moment) {
  step_.moment = moment;
  for (uint32_t i = 0; i < atoms_.size(); ++i) {
    const Atom& a = atoms_[i];
    if (a.size == 0) continue;
    const uint32_t* old = a.root_before == kNone ? nullptr : before_of_.find(a.root_before);
    const uint32_t* now = a.root_now == kNone ? nullptr : now_of_.find(a.root_now);
    const int64_t from = old == nullptr ? kNoCluster : before_[*old].id;
    const int64_t to = now == nullptr ? kNoCluster : now_[*now].id;
    if (from != to) transfers_.push_back({from, to, i});
  }
  std::sort(transfers_.begin(), transfers_.end(), [](const Transfer& a, const Transfer& b) {
    if (a.from != b.from) return a.from < b.from;
    return a.to != b.to ? a.to < b.to : a.atom < b.atom;
  });
  for (const Transfer& t : transfers_) {
    leaves.nodes.for_each_leaf(atoms_[t.atom].n, leaf_stack_, [&](const Node& leaf) {
      step_.keys.push_back(leaves.keys[leaf.left]);
    });
    if (!step_.moves.empty() && step_.moves.back().from == t.from &&
        step_.moves.back().to == t.to) {
      step_.moves.back().end = step_.keys.size();
    } else {
      step_.moves.push_back({t.from, t.to, step_.keys.size()});
    }
  }
  report_sizes();
  cluster_of_.reserve(cluster_of_.size() + now_.size());
  if (steps_.size() == steps_.capacity()) steps_.reserve(2 * steps_.size() + 1);
  prepared_ = true;
}

// Lists the sizes of the clusters that leaves left or joined.
void Watch::report_sizes() {
  Vec<int64_t> moved;
  for (const WatchStep::Move& move : step_.moves) {
    moved.push_back(move.from);
    moved.push_back(move.to);
  }
  std::sort(moved.begin(), moved.end());
  for (const Cluster& c : now_) {
    if (c.size != c.size_before || std::binary_search(moved.begin(), moved.end(), c.id)) {
      step_.sizes.push_back({c.id, c.size_before, c.size});
    }
  }
  for (const Cluster& c : before_) {
    if (!c.continued) step_.sizes.push_back({c.id, c.size, 0});
  }
  std::sort(step_.sizes.begin(), step_.sizes.end(),
            [](const auto& a, const auto& b) { return a.cluster < b.cluster; });
}

}  // namespace dynhac
