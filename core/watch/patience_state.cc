// The saved form of Patience.

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/watch/patience.h"

namespace dynhac {

Patience::State Patience::state() const {
  State state;
  state.next = next_cluster_;
  Vec<int64_t> ids;
  raws_.for_each([&](int64_t id, const Raw&) { ids.push_back(id); });
  std::ranges::sort(ids);
  for (const int64_t id : ids) {
    state.usual.push_back(raws_.find(id)->usual);
    state.reported.push_back(raws_.find(id)->reported);
  }
  held_.for_each([&](int64_t key, const Held&) { state.held_key.push_back(key); });
  std::ranges::sort(state.held_key);
  for (const int64_t key : state.held_key) state.held_reported.push_back(held_.find(key)->reported);
  for (const Vec<Waiting>* list : {&ending_, &beginning_}) {
    for (const Waiting& w : *list) {
      const double* time = std::get_if<double>(&w.since);
      state.waiting.push_back(w.id);
      state.kind.push_back(time == nullptr ? 0 : 1);
      state.since.push_back(time == nullptr ? std::get<int64_t>(w.since)
                                            : std::bit_cast<int64_t>(*time));
    }
  }
  return state;
}

void Patience::restore(const State& state, std::span<const Cluster> raw,
                       std::span<const int64_t> labels, std::optional<int64_t> version) {
  constexpr int64_t kMostIds = int64_t{1} << 62;
  auto require = [](bool right, const char* what) {
    if (!right) throw std::invalid_argument(what);
  };
  require(state.next >= 0 && state.next <= kMostIds, "next reported cluster");
  require(state.usual.size() == raw.size() && state.reported.size() == raw.size(),
          "reported clusters");
  const auto unordered = std::ranges::adjacent_find(state.held_key, std::greater_equal());
  require(state.held_key.size() == labels.size() && state.held_reported.size() == labels.size() &&
              unordered == state.held_key.end(),
          "points held");
  auto valid = [&](int64_t id) { return id >= kNoCluster && id < state.next; };
  Patience restored(length_);
  restored.next_cluster_ = state.next;
  auto grow = [&](int64_t id, int64_t count) {
    if (id == kNoCluster || count == 0) return;
    const Reported* reported = restored.reported_.find(id);
    restored.reported_.set(id, reported == nullptr
                                   ? Reported{count}
                                   : Reported{reported->size + count, reported->raw});
  };
  for (size_t i = 0; i < raw.size(); ++i) {
    require(valid(state.usual[i]) && valid(state.reported[i]), "reported cluster");
    restored.raws_.set(raw[i].id, {raw[i].size, state.usual[i], state.reported[i]});
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t reported = state.held_reported[i];
    require(valid(reported) && reported != restored.usual(labels[i]),
            "reported cluster of a point");
    restored.held_.set(state.held_key[i], {reported, labels[i]});
    restored.more_pairs_.push_back({labels[i], reported, 1});
    grow(reported, 1);
  }
  restored.add_pairs();
  for (const Cluster& cluster : raw) {
    const Raw& one = *restored.raws_.find(cluster.id);
    grow(one.usual, restored.group_size(one, restored.pairs_of(cluster.id)));
  }
  size_t ending = restored.reported_.size(), beginning = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (state.reported[i] == kNoCluster) {
      ++beginning;
      continue;
    }
    const Reported* reported = restored.reported_.find(state.reported[i]);
    require(reported != nullptr && reported->raw == kNoCluster, "match of a reported cluster");
    restored.reported_.set(state.reported[i], {reported->size, raw[i].id});
    --ending;
  }
  restored.require_placed();
  const size_t waiting = ending + beginning;
  require(state.waiting.size() == waiting && state.since.size() == waiting &&
              state.kind.size() == waiting && (waiting > 0 || labels.empty()),
          "clusters that wait");
  for (size_t i = 0; i < waiting; ++i) {
    const int64_t id = state.waiting[i];
    Vec<Waiting>& list = i < ending ? restored.ending_ : restored.beginning_;
    const Reported* reported = restored.reported_.find(id);
    const Raw* cluster = restored.raws_.find(id);
    require(i < ending ? reported != nullptr && reported->raw == kNoCluster
                       : cluster != nullptr && cluster->reported == kNoCluster,
            "cluster that waits");
    require(list.empty() || list.back().id < id, "order of clusters that wait");
    const double time = std::bit_cast<double>(state.since[i]);
    require(state.kind[i] == 0 || (state.kind[i] == 1 && std::isfinite(time)), "time waited");
    const Number since = state.kind[i] == 0 ? Number(state.since[i]) : Number(time);
    if (version) {
      require(state.kind[i] == 0 && state.since[i] >= 0 && state.since[i] <= *version &&
                  !due(since, Number(*version)),
              "updates waited");
    }
    list.push_back({id, since});
  }
  restored.reported_.commit();
  restored.raws_.commit();
  restored.held_.commit();
  reported_ = std::move(restored.reported_);
  raws_ = std::move(restored.raws_);
  held_ = std::move(restored.held_);
  pairs_.swap(restored.pairs_now_);
  ending_.swap(restored.ending_);
  beginning_.swap(restored.beginning_);
  next_cluster_ = restored.next_cluster_;
  steps_.clear();
}

// Throws std::invalid_argument unless every point is reported to be where the rules put it. An
// update relies on it: it visits only clusters that changed or wait, and those that share points
// with them.
void Patience::require_placed() const {
  auto may_be = [&](int64_t raw, int64_t reported) {
    const Reported* found = reported == kNoCluster ? nullptr : reported_.find(reported);
    if (reported != kNoCluster && found == nullptr) return false;
    const bool ending = found != nullptr && found->raw == kNoCluster;
    if (raw == kNoCluster) return ending;
    const int64_t match = raws_.find(raw)->reported;
    if (match == kNoCluster) return !ending;
    return reported == match || ending;
  };
  bool right = true;
  for (const Pair& pair : pairs_now_) right &= may_be(pair.raw, pair.reported);
  raws_.for_each([&](int64_t id, const Raw& raw) {
    const auto held = pairs_of(id);
    right &= may_be(id, raw.usual) && group_size(raw, held) > 0;
    // A match is one because of the points that both have.
    right &= raw.reported == raw.usual || raw.reported == kNoCluster ||
             std::ranges::binary_search(held, raw.reported, {}, &Pair::reported);
  });
  if (!right) throw std::invalid_argument("reported cluster of a point");
}

}  // namespace dynhac
