// Searching in a KD-tree.

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/partition.h"
#include "core/neighbors/kd_tree.h"

namespace dynhac {

namespace {

constexpr size_t kFewQueries = 64;  // so few are not sorted
constexpr size_t kRange = 1024;     // queries of one piece of parallel work

}  // namespace

// Runs one query after the other and reuses its memory.
class KdTree::Search {
 public:
  Search(const KdTree& tree, size_t k)
      : tree_(tree), k_(k), room_(k + std::max<size_t>(k / 2, kBlock)) {
    found_.reserve(std::min(room_, static_cast<size_t>(tree.size_)));
  }

  void run(const float* query, int64_t* slots, double* distances) {
    found_.clear();
    worst_ = {kInfinity, kNone};
    limit_ = kInfinity;
    if (tree_.size_ > 0 && k_ > 0) search(query);
    std::sort(found_.begin(), found_.end());
    const size_t n = std::min(k_, found_.size());
    for (size_t i = 0; i < k_; ++i) {
      slots[i] = i < n ? static_cast<int64_t>(found_[i].slot) : -1;
      distances[i] = i < n ? found_[i].distance : kInfinity;
    }
  }

 private:
  struct Waiting {
    uint32_t node;
    double square;  // of the distance to its box
  };

  void search(const float* query) {
    waiting_.assign(1, {tree_.root_, tree_.box_square(tree_.root_, query)});
    while (!waiting_.empty()) {
      const Waiting next = waiting_.back();
      waiting_.pop_back();
      if (next.square > limit_) continue;
      const Node& node = tree_.nodes_[next.node];
      if (node.leaf()) {
        look_at(next.node, query);
        continue;
      }
      Waiting near = {node.left, tree_.box_square(node.left, query)};
      Waiting far = {node.right, tree_.box_square(node.right, query)};
      if (far.square < near.square) std::swap(near, far);
      if (far.square <= limit_) waiting_.push_back(far);
      if (near.square <= limit_) waiting_.push_back(near);
    }
  }

  void look_at(uint32_t at, const float* query) {
    const Node& leaf = tree_.nodes_[at];
    if (leaf.equal) {
      const double square = tree_.square(query, tree_.low(at));
      for (const Vec<uint32_t>& slots : tree_.equal_slots_[leaf.storage].chunks()) {
        for (const uint32_t slot : slots) {
          if (!offer(square, slot)) return;  // larger slots are rejected, too
        }
      }
      return;
    }
    const uint32_t* slots = tree_.block_slots(leaf);
    const float* vector = tree_.block_vectors(leaf);
    for (uint32_t i = 0; i < leaf.count; ++i, vector += tree_.dimension_) {
      offer(tree_.square(query, vector), slots[i]);
    }
  }

  // Keeps the point if it may be one of the k nearest; returns whether it did.
  bool offer(double square, uint32_t slot) {
    if (square > limit_) return false;
    const Found one = {std::sqrt(square), slot};
    if (!(one < worst_)) return false;
    found_.push_back(one);
    if (found_.size() == room_) {
      const auto last = found_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
      std::nth_element(found_.begin(), last, found_.end());
      worst_ = *last;
      // Squares slightly above the square of the worst distance may have the same root.
      limit_ = worst_.distance * worst_.distance * (1 + 0x1p-50);
      found_.resize(k_);
    }
    return true;
  }

  const KdTree& tree_;
  size_t k_;
  size_t room_;
  Found worst_ = {kInfinity, kNone};  // the k-th nearest when found_ was last cut to k
  double limit_ = kInfinity;  // points with a larger squared distance are farther than worst_
  Vec<Found> found_;
  Vec<Waiting> waiting_;
};

void KdTree::query(std::span<const float> queries, size_t k, std::span<int64_t> slots,
                   std::span<double> distances, Poll* poll) const {
  require_whole();
  const size_t n = queries.size() / dimension_;
  if (queries.size() != n * dimension_ || slots.size() != n * k || distances.size() != n * k) {
    throw std::invalid_argument("lengths");
  }
  require_finite(queries, dimension_);
  Workers workers(n < kFewQueries ? 1 : threads_);
  const Workers::Session session(workers);
  // A search may read the whole tree, but most read little: the clock is not asked for each.
  constexpr size_t kSearches = 16;
  const auto run = [&](Search& search, size_t i) {
    search.run(&queries[i * dimension_], slots.data() + i * k, distances.data() + i * k);
  };
  const auto polled = [&](uint32_t hand) {
    if (poll == nullptr || !Workers::is_caller(hand)) return;
    poll->advance(kSearches * (hand == 0 ? 1 : workers.count()));
  };
  if (n < kFewQueries || root_ == kNone) {
    Search search(*this, k);
    for (size_t i = 0; i < n; ++i) {
      run(search, i);
      if ((i + 1) % kSearches == 0) polled(0);
    }
    return;
  }
  // In the order of their leaves, so that each search finds in the cache what the one before it
  // read.
  const Buffer<Queued> order = in_order_of_leaves(queries, workers);
  workers.for_ranges(n, kRange, [&](size_t begin, size_t end, uint32_t hand) {
    Search search(*this, k);
    for (size_t i = begin; i < end; ++i) {
      run(search, order[i].query);
      if ((i + 1 - begin) % kSearches == 0) polled(hand);
    }
  });
}

Buffer<KdTree::Queued> KdTree::in_order_of_leaves(std::span<const float> queries,
                                                  Workers& workers) const {
  const size_t n = queries.size() / dimension_;
  Buffer<Queued> found(n), order(n);
  workers.for_ranges(n, kRange, [&](size_t begin, size_t end, uint32_t) {
    for (size_t i = begin; i < end; ++i) found[i] = {leaf_at(&queries[i * dimension_]), i};
  });
  const KeyRanges ranges(nodes_.size(), n, kRange);
  const Vec<size_t> begins = partition(
      workers, n, ranges.buckets, order.data(), [&](size_t i) { return ranges.of(found[i].leaf); },
      [&](size_t i) { return found[i]; }, [](size_t) {});
  workers.run(ranges.buckets, [&](size_t bucket, uint32_t) {
    std::sort(order.data() + begins[bucket], order.data() + begins[bucket + 1]);
  });
  return order;
}

uint32_t KdTree::leaf_at(const float* query) const {
  uint32_t at = root_;
  while (!nodes_[at].leaf()) {
    at = query[nodes_[at].axis] < nodes_[at].split ? nodes_[at].left : nodes_[at].right;
  }
  return at;
}

double KdTree::square(const float* a, const float* b) const {
  double sum = 0;
  for (size_t j = 0; j < dimension_; ++j) {
    const double difference = double{a[j]} - double{b[j]};
    sum += difference * difference;
  }
  return sum;
}

double KdTree::box_square(uint32_t node, const float* query) const {
  const float *lows = low(node), *highs = high(node);
  double sum = 0;
  for (size_t j = 0; j < dimension_; ++j) {
    const double outside = double{query[j]} - double{std::clamp(query[j], lows[j], highs[j])};
    sum += outside * outside;
  }
  return sum;
}

}  // namespace dynhac
