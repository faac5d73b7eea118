#include "core/watch/patience.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dynhac {

namespace {

constexpr int64_t kNew = -2;  // the reported cluster of a new point, until it is decided

template <class Row>
const Row* find_id(const Vec<Row>& rows, int64_t id) {
  const auto at = std::ranges::lower_bound(rows, id, {}, &Row::id);
  return at == rows.end() || at->id != id ? nullptr : &*at;
}
template <class Row>
Row* find_id(Vec<Row>& rows, int64_t id) {
  return const_cast<Row*>(find_id(std::as_const(rows), id));
}

// Whether a part of a cluster comes before another one: the larger first, then the older reported
// cluster, and no cluster last.
bool larger_part(int64_t size_a, int64_t reported_a, int64_t size_b, int64_t reported_b) {
  if (size_a != size_b) return size_a > size_b;
  if ((reported_a < 0) != (reported_b < 0)) return reported_b < 0;
  return reported_a < reported_b;
}

}  // namespace

void Patience::start(const WatchStep& raw, int64_t next_cluster) {
  for (const WatchStep::Size& s : raw.sizes) {
    reported_.set(s.cluster, {s.now, s.cluster});
    raws_.set(s.cluster, {s.now, s.cluster, s.cluster});
  }
  reported_.commit();
  raws_.commit();
  next_cluster_ = next_cluster;
  if (!raw.empty()) steps_.push_back(raw);
}

void Patience::prepare(const WatchStep& raw, const Points& points, const RawClusters& clusters,
                       const Moment& moment, Number now) {
  forget();
  if (raw.empty() && ending_.empty() && beginning_.empty()) return;
  prepared_ = true;
  label_moved(raw, points);
  take_raw(raw);
  place_moved(points);
  resize(0);
  list_involved(raw);
  match();
  wait(now);
  report_due(now);
  const size_t first = transfers_.size();
  shift_usual(clusters);
  shift_held();
  resize(first);
  report(moment);
}

void Patience::commit() noexcept {
  if (!prepared_) return;
  reported_.commit();
  raws_.commit();
  held_.commit();
  pairs_.swap(pairs_now_);
  ending_.swap(ending_now_);
  beginning_.swap(beginning_now_);
  next_cluster_ = next_cluster_now_;
  if (!step_.empty()) steps_.push_back(std::move(step_));  // reserved by report()
  prepared_ = false;
}

void Patience::abandon() noexcept {
  reported_.rollback();
  raws_.rollback();
  held_.rollback();
  prepared_ = false;
}

bool Patience::due(const Number& since, const Number& now) const {
  const int64_t *a = std::get_if<int64_t>(&since), *b = std::get_if<int64_t>(&now);
  if (a == nullptr || b == nullptr) return to_double(now) - to_double(since) >= to_double(length_);
  // The difference of two ints, the larger one first, fits an unsigned one.
  const uint64_t waited = *b < *a ? 0 : static_cast<uint64_t>(*b) - static_cast<uint64_t>(*a);
  if (const int64_t* length = std::get_if<int64_t>(&length_)) {
    return waited >= static_cast<uint64_t>(*length);
  }
  return static_cast<double>(waited) >= std::get<double>(length_);
}

int64_t Patience::usual(int64_t raw) const {
  const Raw* found = raw == kNoCluster ? nullptr : raws_.find(raw);
  return found == nullptr ? kNoCluster : found->usual;
}

int64_t Patience::reported(int64_t key, int64_t raw) const {
  const Held* held = held_.empty() ? nullptr : held_.find(key);
  return held == nullptr ? usual(raw) : held->reported;
}

void Patience::forget() {
  step_ = WatchStep();
  for (Vec<Pair>* pairs : {&pairs_now_, &more_pairs_, &merged_pairs_}) recycle(*pairs);
  recycle(ending_now_);
  recycle(beginning_now_);
  recycle(moved_);
  recycle(matched_reported_);
  recycle(matched_raws_);
  recycle(due_beginnings_);
  recycle(transfers_);
  recycle(sizes_);
  next_cluster_now_ = next_cluster_;
}

// Lists the points that changed raw cluster, with their reported clusters.
void Patience::label_moved(const WatchStep& raw, const Points& points) {
  moved_.reserve(raw.keys.size());
  size_t at = 0;
  for (const WatchStep::Move& move : raw.moves) {
    const int64_t usual_before = usual(move.from);
    for (; at < move.end; ++at) {
      const int64_t key = raw.keys[at];
      const Held* held = held_.find(key);
      int64_t reported = held == nullptr ? usual_before : held->reported;
      if (move.from == kNoCluster && std::ranges::binary_search(points.added, key)) reported = kNew;
      const bool gone = move.to == kNoCluster && std::ranges::binary_search(points.removed, key);
      moved_.push_back({key, move.from, reported, move.to, gone});
    }
  }
}

// Takes over the sizes of the raw clusters. The usual reported cluster of a new one is that of most
// of its points.
void Patience::take_raw(const WatchStep& raw) {
  Vec<Pair> parts;
  for (const Moved& m : moved_) {
    if (m.to != kNoCluster && m.reported != kNew && raws_.find(m.to) == nullptr) {
      parts.push_back({m.to, m.reported, 1});
    }
  }
  std::ranges::sort(parts, Pair::before);
  auto part = parts.begin();
  for (const WatchStep::Size& s : raw.sizes) {
    const Raw* old = raws_.find(s.cluster);
    if (old != nullptr) {
      if (s.now > 0) raws_.set(s.cluster, {s.now, old->usual, old->reported});
      continue;
    }
    int64_t most = 0, usual = kNoCluster;
    while (part != parts.end() && part->raw == s.cluster) {
      const auto next =
          std::find_if(part, parts.end(), [&](const Pair& p) { return !p.same_pair(*part); });
      if (larger_part(next - part, part->reported, most, usual))
        most = next - part, usual = part->reported;
      part = next;
    }
    raws_.set(s.cluster, {s.now, usual, kNoCluster});
  }
}

// Puts the points that changed raw cluster, or left the model, where they are now.
void Patience::place_moved(const Points& points) {
  auto release = [&](int64_t key) {
    const Held* held = held_.find(key);
    if (held == nullptr) return;
    more_pairs_.push_back({held->raw, held->reported, -1});
    held_.erase(key);
  };
  for (const Moved& m : moved_) {
    release(m.key);
    if (m.gone) {
      if (m.reported != kNoCluster) transfers_.push_back({m.reported, kNoCluster, m.key});
    } else if (m.reported != usual(m.to)) {
      held_.set(m.key, {m.reported, m.to});
      more_pairs_.push_back({m.to, m.reported, 1, 1});
    }
  }
  for (const int64_t key : points.removed) {  // those whose raw cluster was none
    if (held_.empty()) break;
    const Held* held = held_.find(key);
    if (held == nullptr) continue;
    transfers_.push_back({held->reported, kNoCluster, key});
    release(key);
  }
  pairs_now_ = pairs_;
  add_pairs();
}

// Adds more_pairs_ to pairs_now_.
void Patience::add_pairs() {
  if (more_pairs_.empty()) return;
  std::ranges::sort(more_pairs_, Pair::before);
  recycle(merged_pairs_);
  merged_pairs_.reserve(pairs_now_.size() + more_pairs_.size());
  std::ranges::merge(pairs_now_, more_pairs_, std::back_inserter(merged_pairs_), Pair::before);
  recycle(more_pairs_);
  recycle(pairs_now_);
  for (const Pair& pair : merged_pairs_) {
    if (!pairs_now_.empty() && pairs_now_.back().same_pair(pair)) {
      pairs_now_.back().count += pair.count;
      pairs_now_.back().moved += pair.moved;
    } else {
      if (!pairs_now_.empty() && pairs_now_.back().count == 0) pairs_now_.pop_back();
      pairs_now_.push_back(pair);
    }
  }
  if (!pairs_now_.empty() && pairs_now_.back().count == 0) pairs_now_.pop_back();
}

std::span<const Patience::Pair> Patience::pairs_of(int64_t raw) const {
  const auto found = std::ranges::equal_range(pairs_now_, raw, {}, &Pair::raw);
  return {found.begin(), found.end()};
}

// Lists the clusters whose match may change: those that the update changed, those that wait, and
// those that share points with these. All others are equal to their match.
void Patience::list_involved(const WatchStep& raw) {
  auto add_reported = [&](int64_t id) {
    if (id >= 0) matched_reported_.push_back({id});
  };
  for (const WatchStep::Size& s : raw.sizes) {
    if (const Raw* before = raws_.find(s.cluster)) add_reported(before->reported);
    if (s.now == 0) {
      raws_.erase(s.cluster);
    } else {
      matched_raws_.push_back({s.cluster});
    }
  }
  for (const Waiting& w : beginning_) {
    if (raws_.find(w.id) != nullptr) matched_raws_.push_back({w.id});
  }
  for (const Waiting& w : ending_) add_reported(w.id);
  for (const Moved& m : moved_) add_reported(m.reported);
  for (const Pair& pair : pairs_now_) {
    add_reported(pair.reported);
    if (pair.raw != kNoCluster) matched_raws_.push_back({pair.raw});
  }
  auto unique = [](Vec<Matched>& rows) {
    std::ranges::sort(rows, {}, &Matched::id);
    const auto rest = std::ranges::unique(rows, {}, &Matched::id);
    rows.erase(rest.begin(), rest.end());
  };
  unique(matched_raws_);
  for (const Matched& row : matched_raws_) {
    add_reported(raws_.find(row.id)->usual);
    add_reported(raws_.find(row.id)->reported);
  }
  unique(matched_reported_);
  for (Matched& row : matched_reported_) {
    row.before = reported_.find(row.id)->raw;
    if (raws_.find(row.before) != nullptr) matched_raws_.push_back({row.before});
  }
  unique(matched_raws_);
  for (Matched& row : matched_raws_) row.before = raws_.find(row.id)->reported;
}

int64_t Patience::group_size(const Raw& raw, std::span<const Pair> held) const {
  int64_t size = raw.size;
  for (const Pair& pair : held) size -= pair.count;
  return size;
}

void Patience::match() {
  Vec<Pair> shared;
  for (const Matched& row : matched_raws_) {
    const Raw& raw = *raws_.find(row.id);
    const auto held = pairs_of(row.id);
    for (const Pair& pair : held) {
      if (pair.reported >= 0) shared.push_back(pair);
    }
    const int64_t rest = group_size(raw, held);
    if (raw.usual >= 0 && rest > 0) shared.push_back({row.id, raw.usual, rest});
  }
  std::ranges::sort(shared, [](const Pair& a, const Pair& b) {
    if (a.count != b.count) return a.count > b.count;
    return a.reported != b.reported ? a.reported < b.reported : a.raw < b.raw;
  });
  for (const Pair& pair : shared) {
    Matched &reported = *find_id(matched_reported_, pair.reported),
            &raw = *find_id(matched_raws_, pair.raw);
    if (reported.now != kNoCluster || raw.now != kNoCluster) continue;
    reported.now = pair.raw;
    raw.now = pair.reported;
  }
  for (const Matched& row : matched_reported_) {
    if (row.now != row.before) reported_.set(row.id, {reported_.find(row.id)->size, row.now});
  }
  for (const Matched& row : matched_raws_) {
    const Raw& raw = *raws_.find(row.id);
    if (row.now != row.before) raws_.set(row.id, {raw.size, raw.usual, row.now});
  }
}

// Lists what waits. All that waited before is among the clusters involved.
void Patience::wait(Number now) {
  for (const Matched& row : matched_reported_) {
    if (row.now != kNoCluster || reported_.find(row.id)->size == 0) continue;
    ending_now_.push_back({row.id, waited(true, row.id, now)});
  }
  for (const Matched& row : matched_raws_) {
    if (row.now == kNoCluster) beginning_now_.push_back({row.id, waited(false, row.id, now)});
  }
}

// Since when a reported or raw cluster waits: along the alternating path of matches before and now,
// to the cluster of its kind that waited in its place.
Number Patience::waited(bool reported, int64_t id, Number now) const {
  const Vec<Matched>& own = reported ? matched_reported_ : matched_raws_;
  const Vec<Matched>& other = reported ? matched_raws_ : matched_reported_;
  const Vec<Waiting>& before = reported ? ending_ : beginning_;
  while (true) {
    if (const Waiting* w = find_id(before, id)) return w->since;
    const Matched* left = find_id(other, find_id(own, id)->before);
    if (left == nullptr || left->now == kNoCluster) return now;
    id = left->now;
  }
}

// Decides what is reported: beginning clusters get ids, the largest first.
void Patience::report_due(Number now) {
  std::erase_if(ending_now_, [&](const Waiting& w) { return due(w.since, now); });
  std::erase_if(beginning_now_, [&](const Waiting& w) {
    const bool reported = due(w.since, now);
    if (reported) due_beginnings_.push_back(w);
    return reported;
  });
  Vec<std::pair<int64_t, int64_t>> by_size;
  for (const Waiting& w : due_beginnings_) by_size.push_back({-raws_.find(w.id)->size, w.id});
  std::ranges::sort(by_size);
  for (const auto& [size, id] : by_size) {
    const Raw& raw = *raws_.find(id);
    reported_.set(next_cluster_now_, {0, id});
    raws_.set(id, {raw.size, raw.usual, next_cluster_now_++});
  }
}

// The reported cluster that most points of a raw cluster are in.
int64_t Patience::most_of(const Raw& raw, std::span<const Pair> held) const {
  int64_t most = group_size(raw, held), reported = most > 0 ? raw.usual : kNoCluster;
  for (const Pair& pair : held) {
    if (pair.reported != kNew && larger_part(pair.count, pair.reported, most, reported)) {
      most = pair.count;
      reported = pair.reported;
    }
  }
  return reported;
}

// Where the points of a raw cluster that are in a reported cluster are reported to be now.
int64_t Patience::target(int64_t raw, int64_t reported) const {
  const bool stays = reported >= 0 && find_id(ending_now_, reported) != nullptr;
  if (raw == kNoCluster) return stays ? reported : kNoCluster;
  const Raw& cluster = *raws_.find(raw);
  if (cluster.reported == kNoCluster) {
    return reported == kNew ? most_of(cluster, pairs_of(raw)) : reported;
  }
  const bool born = find_id(due_beginnings_, raw) != nullptr;
  return stays && !born ? reported : cluster.reported;
}

// Moves the points that are in the usual reported cluster of their raw cluster.
void Patience::shift_usual(const RawClusters& clusters) {
  Vec<Shift> shifts;
  Vec<int64_t> visited;
  for (const Matched& row : matched_raws_) {
    const Raw& raw = *raws_.find(row.id);
    const bool none = group_size(raw, pairs_of(row.id)) == 0;
    int64_t to = target(row.id, raw.usual);
    if (none) to = raw.reported == kNoCluster ? most_of(raw, pairs_of(row.id)) : raw.reported;
    if (to == raw.usual) continue;
    shifts.push_back({row.id, raw.usual, to});
    if (!none) visited.push_back(row.id);
  }
  if (!visited.empty()) {
    Vec<RawClusters::Member> members;
    clusters.members(visited, members);
    for (const RawClusters::Member& member : members) {
      const auto shift = std::ranges::lower_bound(shifts, member.cluster, {}, &Shift::raw);
      if (held_.find(member.key) == nullptr) {
        transfers_.push_back({shift->from, shift->to, member.key});
      }
    }
  }
  for (const Shift& shift : shifts) {
    const Raw& raw = *raws_.find(shift.raw);
    raws_.set(shift.raw, {raw.size, shift.to, raw.reported});
  }
}

// Moves points that are held. Those that are in the usual reported cluster now are held no more.
void Patience::shift_held() {
  Vec<Shift> shifts;  // in the order of pairs_now_
  bool only_moved = true;
  for (const Pair& pair : pairs_now_) {
    const int64_t to = target(pair.raw, pair.reported);
    if (to == pair.reported && to != usual(pair.raw)) continue;
    shifts.push_back({pair.raw, pair.reported, to});
    only_moved &= pair.count == pair.moved;
  }
  if (shifts.empty()) return;
  Vec<int64_t> keys;
  if (only_moved) {
    for (const Moved& m : moved_) keys.push_back(m.key);
  } else {
    held_.for_each([&](int64_t key, const Held&) { keys.push_back(key); });
  }
  for (const int64_t key : keys) {
    const Held* found = held_.find(key);
    if (found == nullptr) continue;
    const Held held = *found;
    const auto shift =
        std::ranges::lower_bound(shifts, std::pair(held.raw, held.reported), {},
                                 [](const Shift& s) { return std::pair(s.raw, s.from); });
    if (shift == shifts.end() || shift->raw != held.raw || shift->from != held.reported) continue;
    const int64_t from = held.reported == kNew ? kNoCluster : held.reported;
    if (from != shift->to) transfers_.push_back({from, shift->to, key});
    more_pairs_.push_back({held.raw, held.reported, -1});
    if (shift->to == usual(held.raw)) {
      held_.erase(key);
    } else {
      held_.set(key, {shift->to, held.raw});
      more_pairs_.push_back({held.raw, shift->to, 1});
    }
  }
  add_pairs();
}

// Adds the transfers from `first` on to the sizes of the reported clusters.
void Patience::resize(size_t first) {
  Vec<std::pair<int64_t, int64_t>> deltas;
  for (size_t i = first; i < transfers_.size(); ++i) {
    if (transfers_[i].from >= 0) deltas.push_back({transfers_[i].from, -1});
    if (transfers_[i].to >= 0) deltas.push_back({transfers_[i].to, 1});
  }
  std::ranges::sort(deltas);
  for (size_t i = 0; i < deltas.size();) {
    const int64_t id = deltas[i].first;
    int64_t delta = 0;
    for (; i < deltas.size() && deltas[i].first == id; ++i) delta += deltas[i].second;
    const Reported& reported = *reported_.find(id);
    sizes_.push_back({id, reported.size, 0});
    reported_.set(id, {reported.size + delta, reported.raw});
  }
}

// Writes the step. Reported clusters without points end.
void Patience::report(const Moment& moment) {
  step_.moment = moment;
  std::ranges::stable_sort(sizes_, {}, &WatchStep::Size::cluster);
  for (const WatchStep::Size& s : sizes_) {
    if (!step_.sizes.empty() && step_.sizes.back().cluster == s.cluster) continue;
    const int64_t now = reported_.find(s.cluster)->size;
    step_.sizes.push_back({s.cluster, s.before, now});
    if (now == 0) reported_.erase(s.cluster);
  }
  std::ranges::sort(transfers_, [](const Transfer& a, const Transfer& b) {
    if (a.from != b.from) return a.from < b.from;
    return a.to != b.to ? a.to < b.to : a.key < b.key;
  });
  for (const Transfer& t : transfers_) {
    step_.keys.push_back(t.key);
    const bool more =
        !step_.moves.empty() && step_.moves.back().from == t.from && step_.moves.back().to == t.to;
    if (!more) step_.moves.push_back({t.from, t.to, 0});
    step_.moves.back().end = step_.keys.size();
  }
  for (Pair& pair : pairs_now_) pair.moved = 0;
  if (steps_.size() == steps_.capacity()) steps_.reserve(2 * steps_.size() + 1);
}

Vec<Patience::Cluster> Patience::clusters() const {
  Vec<Cluster> all;
  reported_.for_each(
      [&](int64_t id, const Reported& reported) { all.push_back({id, reported.size}); });
  std::ranges::sort(all, {}, &Cluster::id);
  return all;
}

Vec<int64_t> Patience::usual_of(int64_t cluster) const {
  Vec<int64_t> found;
  raws_.for_each([&](int64_t id, const Raw& raw) {
    if (raw.usual == cluster) found.push_back(id);
  });
  std::ranges::sort(found);
  return found;
}

}  // namespace dynhac
