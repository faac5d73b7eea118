#include "core/watch/watch.h"

#include <algorithm>
#include <stdexcept>

namespace dynhac {

void Watch::start(const Leaves& leaves, const Moment& moment) {
  forget();
  rule_->start(leaves.nodes, change_.roots_now);
  for (const NodeRef root : change_.roots_now) {
    const uint32_t size = leaves.nodes[root].size;
    change_.atoms.push_back({root, size, kNone, root});
    add_new(root, size);
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
  rule_->find(difference, leaves.nodes, change_);
  join_replaced(leaves);
  list_clusters(difference);
  match();
  report(leaves, moment);
}

void Watch::commit() noexcept {
  if (!prepared_) return;
  rule_->commit();
  for (const Cluster& c : before_) cluster_of_.erase(c.root);
  for (const Cluster& c : now_) cluster_of_.insert(c.root, c.id);  // reserved by report()
  next_cluster_ = next_cluster_after_;
  if (!step_.empty()) steps_.push_back(std::move(step_));  // reserved by report()
  prepared_ = false;
}

void Watch::abandon() noexcept {
  rule_->abandon();
  prepared_ = false;
}

void Watch::forget() {
  prepared_ = false;
  step_ = WatchStep();
  change_.clear();
  recycle(leaf_stack_);
  recycle(before_);
  recycle(now_);
  recycle(overlaps_);
  recycle(transfers_);
  recycle(before_of_);
  recycle(now_of_);
}

// A leaf that was removed and added again is one atom.
void Watch::join_replaced(const Leaves& leaves) {
  for (const auto& [old_leaf, new_leaf] : leaves.replaced) {
    Atom& old = change_.atom(old_leaf, 1);
    const NodeRef root_before = old.root_before;
    old.size = 0;
    change_.atom(new_leaf, 1).root_before = root_before;
  }
}

void Watch::list_clusters(const Difference& difference) {
  for (const NodeRef root : change_.roots_before) {
    const int64_t* id = cluster_of_.find(root);
    if (id == nullptr) continue;
    before_of_.insert(root, static_cast<uint32_t>(before_.size()));
    before_.push_back({root, difference.before(root).size, *id});
  }
  for (const NodeRef root : change_.roots_now) add_new(root, difference.now(root).size);
}

void Watch::add_new(NodeRef root, uint32_t size) {
  if (size < min_size_) return;
  now_of_.insert(root, static_cast<uint32_t>(now_.size()));
  now_.push_back({root, size});
}

void Watch::match() {
  for (const Atom& a : change_.atoms) {
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
  for (uint32_t i = 0; i < change_.atoms.size(); ++i) {
    const Atom& a = change_.atoms[i];
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
    leaves.nodes.for_each_leaf(change_.atoms[t.atom].n, leaf_stack_, [&](const Node& leaf) {
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
