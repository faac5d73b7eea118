#include "core/hierarchy/group_run.h"

#include <algorithm>

namespace dynhac {

// Weights inside a small bag. Rows are clusters, under the name of one member; columns are single
// members (single_) or clusters (between_).
class GroupRun::Dense {
 public:
  explicit Dense(GroupRun& run) : run_(run), n_(run.n_) {
    run.single_.assign(size_t{n_} * n_, 0);
    for (const Pair& p : run.pairs_) {
      run.single_[p.i * n_ + p.j] = p.w;
      run.single_[p.j * n_ + p.i] = p.w;
    }
    run.between_.assign(run.single_.begin(), run.single_.end());
    run.owner_.resize(n_);
    for (uint32_t i = 0; i < n_; ++i) run.owner_[i] = i;
  }

  Weight weight(uint32_t a, uint32_t b) const { return run_.between_[a * n_ + b]; }

  uint32_t owner(uint32_t member) const { return run_.owner_[member]; }

  // The largest linkage of a to single members in neither a nor b.
  double inside(uint32_t a, uint32_t b) const {
    double most = 0;
    const Weight* row = &run_.single_[a * n_];
    const uint32_t size = run_.clusters_[a].size;
    for (uint32_t y = 0; y < n_; ++y) {
      if (row[y] == 0 || owner(y) == a || owner(y) == b) continue;
      most = std::max(most, linkage(row[y], size, run_.member_size_[y]));
    }
    return most;
  }

  // Returns the name of the united cluster.
  uint32_t unite(uint32_t a, uint32_t b) {
    for (uint32_t k = 0; k < n_; ++k) {
      run_.single_[a * n_ + k] += run_.single_[b * n_ + k];
      if (run_.owner_[k] == b) run_.owner_[k] = a;
      if (k == a || k == b) continue;
      run_.between_[a * n_ + k] += run_.between_[b * n_ + k];
      run_.between_[k * n_ + a] = run_.between_[a * n_ + k];
      run_.between_[b * n_ + k] = run_.between_[k * n_ + b] = 0;
    }
    run_.between_[a * n_ + b] = run_.between_[b * n_ + a] = 0;
    return a;
  }

 private:
  GroupRun& run_;
  uint32_t n_;
};

// Weights inside a large bag: for each cluster a map from single members to weights, and a heap of
// the same by w / S(y) for the largest of them. Heap entries may be out of date: sums only grow,
// and grown ones are pushed again, so an entry is valid iff its key agrees with the map.
class GroupRun::Sparse {
 public:
  explicit Sparse(GroupRun& run) : run_(run), maps_(run.n_), heaps_(run.n_), tails_(run.n_) {
    const uint32_t n = run.n_;
    run.owner_.resize(n);
    next_.assign(n, kNone);
    for (uint32_t i = 0; i < n; ++i) run.owner_[i] = tails_[i] = i;
    Vec<uint32_t> degree(n, 0);
    for (const Pair& p : run.pairs_) ++degree[p.i], ++degree[p.j];
    for (uint32_t i = 0; i < n; ++i) {
      maps_[i].reserve(degree[i]);
      heaps_[i].reserve(degree[i]);
    }
    for (const Pair& p : run.pairs_) {
      add(p.i, p.j, p.w);
      add(p.j, p.i, p.w);
      run.pace.step(2 * kStepsOfEntry);
    }
    for (auto& heap : heaps_) {
      std::make_heap(heap.begin(), heap.end());
      run.pace.step(kStepsOfEntry * heap.size());
    }
  }

  uint32_t owner(uint32_t member) {
    uint32_t root = member;
    while (run_.owner_[root] != root) root = run_.owner_[root];
    while (run_.owner_[member] != root) {
      member = std::exchange(run_.owner_[member], root);
    }
    return root;
  }

  Weight weight(uint32_t a, uint32_t b) const {
    if (run_.clusters_[a].count < run_.clusters_[b].count) std::swap(a, b);
    Weight sum = 0;
    for (uint32_t y = b; y != kNone; y = next_[y]) {
      if (const Weight* w = maps_[a].find(y)) sum += *w;
    }
    run_.pace.step(kStepsOfEntry * run_.clusters_[b].count);
    return sum;
  }

  double inside(uint32_t a, uint32_t b) {
    auto& heap = heaps_[a];
    double most = 0;
    aside_.clear();
    while (!heap.empty()) {
      const Entry top = heap.front();
      const uint32_t o = owner(top.y);
      const bool current = o != a && key(*maps_[a].find(top.y), top.y) == top.key;
      if (current && o != b) {
        most = linkage(*maps_[a].find(top.y), run_.clusters_[a].size, run_.member_size_[top.y]);
        break;
      }
      if (current) aside_.push_back(top);
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      run_.pace.step(kStepsOfEntry);
    }
    for (const Entry& entry : aside_) {
      heap.push_back(entry);
      std::push_heap(heap.begin(), heap.end());
    }
    return most;
  }

  uint32_t unite(uint32_t a, uint32_t b) {
    if (maps_[a].size() < maps_[b].size()) std::swap(a, b);
    run_.owner_[b] = a;
    next_[tails_[a]] = b;
    tails_[a] = tails_[b];
    maps_[a].reserve(maps_[a].size() + maps_[b].size());
    run_.pace.step(kStepsOfEntry * maps_[b].size());
    maps_[b].for_each([&](uint32_t y, Weight w) {
      if (owner(y) == a) return;
      Weight& sum = maps_[a][y];
      sum += w;
      heaps_[a].push_back({key(sum, y), y});
      std::push_heap(heaps_[a].begin(), heaps_[a].end());
    });
    FlatMap<Weight>().swap(maps_[b]);
    Vec<Entry>().swap(heaps_[b]);
    return a;
  }

 private:
  struct Entry {
    double key;
    uint32_t y;
    bool operator<(const Entry& o) const { return key != o.key ? key < o.key : y < o.y; }
  };

  static constexpr uint64_t kStepsOfEntry = 16;  // of the pace, for one entry of a map or a heap

  double key(Weight w, uint32_t y) const { return static_cast<double>(w) / run_.member_size_[y]; }
  void add(uint32_t i, uint32_t j, Weight w) {
    maps_[i][j] = w;
    heaps_[i].push_back({key(w, j), j});
  }

  GroupRun& run_;
  Vec<FlatMap<Weight>> maps_;
  Vec<Vec<Entry>> heaps_;
  Vec<uint32_t> tails_, next_;  // members of a cluster, from the one it is named after
  Vec<Entry> aside_;
};

uint32_t GroupRun::run(const Level& level, const Rule& rule, std::span<const Vertex> members,
                       uint32_t first_slot, std::span<const OldMerge> old, uint32_t bound,
                       MemberResult* results, Merge* merges) {
  n_ = static_cast<uint32_t>(members.size());
  rule_ = &rule;
  members_ = members.data();
  merges_ = merges;
  merged_ = 0;
  scan(level, members, first_slot, results);
  if (n_ == 2 && old.size() <= 1) {
    run_pair(old, results);
    return merged_;
  }
  if (!pairs_.empty() && n_ <= kDense) {
    Dense weights(*this);
    replay(weights, old);
    merge_densely(weights, bound);
  } else if (!pairs_.empty()) {
    Sparse weights(*this);
    replay(weights, old);
    merge_sparsely(weights, bound);
  }
  certify(results);
  return merged_;
}

// Half of all bags have two members: no other members inside, and either certificate is the limit.
void GroupRun::run_pair(std::span<const OldMerge> old, MemberResult* results) {
  results[0].hi = results[1].hi = kInfinity;
  if (pairs_.empty()) return;
  const Cluster &x = clusters_[0], &y = clusters_[1];
  const double l = linkage(pairs_[0].w, x.size, y.size);
  const double least = std::min(x.least_merge, y.least_merge);
  const double outside = std::max(x.external, y.external);
  const bool replayed = !old.empty() && old[0].a != kNone && old[0].b != kNone;
  const double factor = replayed ? rule_->keep : rule_->make;
  if (!rule_->is_heavy(l) || !rule_->good(factor, outside, least, l)) return;
  const double limit = std::max(rule_->limit(least, l), outside);
  const uint32_t a = replayed ? old[0].a : 0;
  merges_[merged_++] = {a,    1 - a, x.size + y.size, replayed ? 0 : kNone, l, std::min(least, l),
                        limit};
  results[0].hi = results[1].hi = limit;
}

void GroupRun::scan(const Level& level, std::span<const Vertex> members, uint32_t first_slot,
                    MemberResult* results) {
  clusters_.clear();
  member_size_.clear();
  external_.clear();
  pairs_.clear();
  for (uint32_t i = 0; i < n_; ++i) {
    const Vertex v = members[i];
    const uint32_t size = level.hot[v].size;
    const std::span<const Entry> entries = level.edges(v);
    Heaviest heaviest;
    double external = 0;
    for (const Entry& e : entries) {
      const Hot& h = level.hot[e.neighbour];
      const double l = linkage(e.weight, size, h.size);
      heaviest.offer(v, e.neighbour, l);
      const uint32_t j = h.slot - first_slot;
      if (j < n_) {
        if (j > i) pairs_.push_back({i, j, e.weight});
      } else {
        external = std::max(external, l);
      }
    }
    edges_read += entries.size();
    if (n_ > kDense) pace.step(entries.size());
    results[i].heaviest = heaviest;
    member_size_.push_back(size);
    external_.push_back(external);
    clusters_.push_back({size, 1, i, level.cold[v].least_merge, external, external * size});
  }
}

// Merges clusters a and b if that is good. Returns the name of the united cluster, or kNone.
template <class Weights>
uint32_t GroupRun::attempt(Weights& weights, uint32_t a, uint32_t b, double factor, uint32_t old) {
  Cluster& x = clusters_[a];
  Cluster& y = clusters_[b];
  const Weight w = weights.weight(a, b);
  const double l = linkage(w, x.size, y.size);
  if (!rule_->is_heavy(l)) return kNone;
  const double least = std::min(x.least_merge, y.least_merge);
  double outside = std::max(external(x), external(y));
  if (!rule_->good(factor, outside, least, l)) return kNone;
  outside = std::max({outside, weights.inside(a, b), weights.inside(b, a)});
  if (!rule_->good(factor, outside, least, l)) return kNone;

  const uint32_t size = x.size + y.size;
  // If rounding puts a mutual best pair past its limit, the linkages that it has are the limit.
  const double limit = std::max(rule_->limit(least, l), outside);
  merges_[merged_] = {x.ref, y.ref, size, old, l, std::min(least, l), limit};
  const Cluster united = {size,
                          x.count + y.count,
                          n_ + merged_,
                          std::min(least, l),
                          0,
                          x.external_sum + y.external_sum};
  ++merged_;
  const uint32_t name = weights.unite(a, b);
  clusters_[name] = united;
  return name;
}

template <class Weights>
void GroupRun::replay(Weights& weights, std::span<const OldMerge> old) {
  now_.resize(n_ + old.size());
  for (uint32_t i = 0; i < n_; ++i) now_[i] = i;
  for (uint32_t j = 0; j < old.size(); ++j) {
    const uint32_t a = old[j].a == kNone ? kNone : now_[old[j].a];
    const uint32_t b = old[j].b == kNone ? kNone : now_[old[j].b];
    uint32_t& result = now_[n_ + j];
    if (old[j].a == kNone || old[j].b == kNone) {
      result = old[j].a == kNone ? b : a;  // one side no longer exists: the other replaces the pair
    } else if (a == kNone || b == kNone) {
      result = kNone;
    } else {
      // a and b may be outdated names of clusters; as members they lead to the present ones.
      result = attempt(weights, weights.owner(a), weights.owner(b), rule_->keep, j);
    }
  }
}

void GroupRun::merge_densely(Dense& weights, uint32_t bound) {
  // Linkages of the pairs that may be tried, -1 for others. A refused pair is tried again only
  // after one side has changed.
  candidates_.assign(size_t{n_} * n_, -1);
  auto consider = [&](uint32_t a, uint32_t b) {
    const Weight w = weights.weight(a, b);
    double l = w > 0 ? linkage(w, clusters_[a].size, clusters_[b].size) : -1;
    if (!rule_->is_heavy(l) || clusters_[a].count + clusters_[b].count > bound) l = -1;
    candidates_[std::min(a, b) * n_ + std::max(a, b)] = l;
  };
  for (uint32_t a = 0; a < n_; ++a) {
    if (weights.owner(a) != a) continue;
    for (uint32_t b = a + 1; b < n_; ++b) {
      if (weights.owner(b) == b) consider(a, b);
    }
  }
  for (;;) {
    double most = 0;
    uint32_t at = kNone;
    for (uint32_t a = 0; a < n_; ++a) {
      for (uint32_t b = a + 1; b < n_; ++b) {
        const double l = candidates_[a * n_ + b];
        if (l < most || l <= 0) continue;
        if (l == most &&
            edge_rank(members_[at / n_], members_[at % n_]) > edge_rank(members_[a], members_[b])) {
          continue;
        }
        most = l;
        at = a * n_ + b;
      }
    }
    if (at == kNone) return;
    const uint32_t a = at / n_, b = at % n_;
    candidates_[at] = -1;
    if (attempt(weights, a, b, rule_->make, kNone) == kNone) continue;
    for (uint32_t k = 0; k < n_; ++k) {  // the union is named a
      if (k != b) candidates_[std::min(b, k) * n_ + std::max(b, k)] = -1;
      if (k != a && weights.owner(k) == k) consider(a, k);
    }
  }
}

void GroupRun::merge_sparsely(Sparse& weights, uint32_t bound) {
  struct Best {
    double l = 0;
    uint64_t rank = 0;
    uint32_t i = kNone, j = kNone;
    bool operator<(const Best& o) const { return l != o.l ? l > o.l : rank > o.rank; }
  };
  Vec<Best> best(n_);
  for (const Pair& p : pairs_) {
    const double l = linkage(p.w, member_size_[p.i], member_size_[p.j]);
    const Best edge = {l, edge_rank(members_[p.i], members_[p.j]), p.i, p.j};
    if (edge < best[p.i]) best[p.i] = edge;
    if (edge < best[p.j]) best[p.j] = edge;
  }
  std::sort(best.begin(), best.end());
  constexpr int kPasses = 3;
  for (int pass = 0; pass < kPasses; ++pass) {
    const uint32_t before = merged_;
    for (const Best& edge : best) {
      if (!rule_->is_heavy(edge.l)) break;
      const uint32_t a = weights.owner(edge.i), b = weights.owner(edge.j);
      if (a == b || clusters_[a].count + clusters_[b].count > bound) continue;
      attempt(weights, a, b, rule_->make, kNone);
    }
    if (merged_ == before) break;
  }
}

// Computes every member's certificate. While the linkages of v to outside its group stay below
// hi(v), those of a cluster A of members stay below the mean of their hi, so that mean must not
// exceed the limit of any merge of A. hi(v) = the present largest linkage of v plus the slack of
// the tightest such merge satisfies this. Where the bound by the mean already exceeds the limit
// although the merge is good, there is no slack: hi is 0, and any growth causes a rerun.
void GroupRun::certify(MemberResult* results) {
  const uint32_t refs = n_ + merged_;
  slack_.assign(refs, kInfinity);
  top_.resize(refs);
  for (uint32_t j = merged_; j-- > 0;) {
    if (slack_[n_ + j] == kInfinity) top_[n_ + j] = n_ + j;
    slack_[merges_[j].a] = slack_[merges_[j].b] = 0;  // not a top
    top_[merges_[j].a] = top_[merges_[j].b] = top_[n_ + j];
  }
  for (const Pair& p : pairs_) {
    const bool alone_i = slack_[p.i] == kInfinity, alone_j = slack_[p.j] == kInfinity;
    if (!alone_i && !alone_j && top_[p.i] == top_[p.j]) continue;
    const double l = linkage(p.w, member_size_[p.i], member_size_[p.j]);
    external_[p.i] = std::max(external_[p.i], l);
    external_[p.j] = std::max(external_[p.j], l);
  }
  sums_.resize(refs);
  for (uint32_t i = 0; i < n_; ++i) sums_[i] = external_[i] * member_size_[i];
  auto size_of = [&](uint32_t ref) {
    return ref < n_ ? member_size_[ref] : merges_[ref - n_].size;
  };
  for (uint32_t j = 0; j < merged_; ++j) sums_[n_ + j] = sums_[merges_[j].a] + sums_[merges_[j].b];
  for (uint32_t j = merged_; j-- > 0;) {
    const Merge& m = merges_[j];
    const double above = top_[n_ + j] == n_ + j ? kInfinity : slack_[n_ + j];
    for (const uint32_t side : {m.a, m.b}) {
      const double slack = m.limit - sums_[side] / size_of(side);
      slack_[side] = std::min(above, slack < 0 ? -kInfinity : slack);
    }
  }
  for (uint32_t i = 0; i < n_; ++i) {
    results[i].hi = slack_[i] == -kInfinity ? 0 : external_[i] + slack_[i];
  }
}

}  // namespace dynhac
