#include "core/points/point_update.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/flat_map.h"
#include "core/points/repair.h"

namespace dynhac {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void require_distinct(std::span<const int64_t> keys, const char* error) {
  if (std::ranges::adjacent_find(keys, std::greater_equal<>()) == keys.end()) return;
  FlatMap<size_t, int64_t> first;
  first.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto [position, added] = first.insert(keys[i], i);
    if (!added) throw BatchError(error, i, *position);
  }
}

void append(IdColumn& column, const IdColumn& from, size_t i) {
  if (column.text) {
    column.texts.push_back(from.texts[i]);
  } else {
    column.ints.push_back(from.ints[i]);
  }
}

}  // namespace

PointUpdate::PointUpdate(PointModel& model, const PointBatch& batch, Poll* poll)
    : model_(model),
      batch_(batch),
      poll_(poll),
      shared_table_(model.table_ == nullptr
                        ? std::make_shared<PointTable>(batch.dimension, batch.time_kind)
                        : model.table_),
      table_(*shared_table_),
      text_(model.ids_.used() || batch.inserted.texts.size() > 0),
      new_points_(batch.inserted.size()),
      window_(model.window_),
      vectors_(batch.vectors),
      journal_(table_, model.ids_, model.index_lost_ ? nullptr : model.index_.index.get(),
               model.index_lost_, model.index_changed_) {}

PointChange PointUpdate::run() {
  find_deleted();
  take_new_ids();
  let_expire();
  reserve_slots();
  search();
  static_cast<Change&>(change_) = apply();
  commit();
  change_.seconds_total = seconds_since(start_);
  return std::move(change_);
}

size_t PointUpdate::n_points() const {
  return table_.size() - leaving_.size() + keys_.size();
}

void PointUpdate::find_deleted() {
  leaving_ = model_.find(batch_.deleted);
  require_distinct(leaving_, "duplicate_delete");
}

void PointUpdate::take_new_ids() {
  if (text_) {
    if (!model_.engine_.steps_waiting()) model_.ids_.forget_retired();
    keys_ = journal_.reserve_keys(batch_.inserted.texts);
  } else {
    keys_ = batch_.inserted.ints;
  }
  Vec<int64_t> deleted = leaving_;
  std::ranges::sort(deleted);
  for (size_t i = 0; table_.size() > 0 && i < keys_.size(); ++i) {
    const int64_t slot = table_.find(keys_[i]);
    if (slot >= 0 && !std::ranges::binary_search(deleted, slot)) throw BatchError("present_id", i);
  }
  require_distinct(keys_, "duplicate_id");
}

void PointUpdate::let_expire() {
  const TimeKind kind = batch_.time_kind;
  if (kind == TimeKind::kFloats && table_.kind() == TimeKind::kInts) {
    if (!table_.exact_as_floats()) throw BatchError("inexact_times", 0);
    journal_.recode(kind);
  }
  times_.assign(batch_.times.begin(), batch_.times.end());
  arrivals_.resize(new_points_);
  std::iota(arrivals_.begin(), arrivals_.end(), table_.next_arrival());
  change_.expired.text = change_.repaired.text = text_;
  if (batch_.clock) window_.advance(*batch_.clock);
  if (!times_.empty()) window_.advance(time_from(kind, std::ranges::max(times_)));
  if (!window_.bounded()) return;

  auto total = static_cast<int64_t>(n_points());
  const int64_t most = window_.max_points().value_or(total);
  if (total <= most && !window_.has_max_age()) return;
  const auto excess = static_cast<size_t>(std::max(total - most, int64_t{0}));
  const Vec<int64_t> old = table_.oldest(excess, window_, leaving_);
  const IdColumn old_ids = model_.ids_of(old);
  const auto time_of_new = [&](size_t i) { return times_.empty() ? 0 : times_[i]; };
  Vec<size_t> by_age(new_points_);
  std::iota(by_age.begin(), by_age.end(), size_t{0});
  std::ranges::stable_sort(by_age, {}, time_of_new);

  // Both lists are ordered by (time, arrival), and every new point arrives after every old one.
  Vec<bool> dropped(new_points_);
  size_t next_new = 0, next_old = 0;
  while (next_new < by_age.size() || next_old < old.size()) {
    const bool takes_new =
        next_new < by_age.size() &&
        (next_old == old.size() || time_of_new(by_age[next_new]) < table_.time(old[next_old]));
    const int64_t time = takes_new ? time_of_new(by_age[next_new]) : table_.time(old[next_old]);
    if (total <= most && !window_.too_old(time_from(table_.kind(), time))) break;
    --total;
    if (takes_new) {
      append(change_.expired, batch_.inserted, by_age[next_new]);
      dropped[by_age[next_new++]] = true;
    } else {
      append(change_.expired, old_ids, next_old);
      leaving_.push_back(old[next_old++]);
    }
  }
  drop(dropped);
}

void PointUpdate::drop(const Vec<bool>& dropped) {
  if (std::ranges::find(dropped, true) == dropped.end()) return;
  size_t kept = 0;
  for (size_t i = 0; i < dropped.size(); ++i) {
    if (dropped[i]) {
      if (text_) gone_.push_back(keys_[i]);
      continue;
    }
    keys_[kept] = keys_[i];
    arrivals_[kept] = arrivals_[i];
    if (!times_.empty()) times_[kept] = times_[i];
    const auto row = batch_.vectors.subspan(i * batch_.dimension, batch_.dimension);
    vectors_kept_.insert(vectors_kept_.end(), row.begin(), row.end());
    ++kept;
  }
  keys_.resize(kept);
  arrivals_.resize(kept);
  if (!times_.empty()) times_.resize(kept);
  vectors_ = vectors_kept_;
}

void PointUpdate::reserve_slots() {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  int64_t next_id = table_.next_id();
  if (!text_) {
    for (const int64_t id : batch_.inserted.ints) {
      next_id = std::max(next_id, id == kLargest ? id : id + 1);
    }
  }
  const int64_t next_arrival = table_.next_arrival() + static_cast<int64_t>(new_points_);
  slots_ = journal_.reserve_slots({vectors_, times_, arrivals_, next_arrival, next_id}, leaving_);
  table_.name(keys_);
}

void PointUpdate::choose_index() {
  const IndexChoice& old = model_.index_;
  const bool lost = model_.index_lost_ || old.index == nullptr;
  index_ = old.index.get();
  if (!lost && std::cmp_less_equal(n_points(), old.max_points)) return;
  new_index_ = model_.chooser_.choose(table_.dimension(), n_points(), old.name, !lost);
  if (new_index_->index == nullptr) {
    new_index_->index = old.index;  // no better one
  } else {
    fill(*new_index_->index, shared_table_, poll_);
  }
  index_ = new_index_->index.get();
  if (index_ == nullptr) throw std::logic_error("no neighbour index was chosen");
}

void PointUpdate::search() {
  if (slots_.empty() && leaving_.empty()) return;
  const auto start = Clock::now();
  choose_index();
  if (!leaving_.empty()) journal_.remove(*index_, leaving_, poll_);
  const size_t k = model_.rules_.n_neighbors, others = std::max<size_t>(n_points(), 1) - 1;
  Answer answer;
  if (slots_.size() == 1) {
    // A point that is searched for before it is added does not find itself.
    answer = ask(slots_, vectors_, std::min(k, others));
    journal_.add(*index_, slots_, vectors_, poll_);
  } else if (!slots_.empty()) {
    begin_phase(poll_, phases::kIndexing, slots_.size());
    journal_.add(*index_, slots_, vectors_, poll_);
    answer = ask(slots_, vectors_, std::min(k, others) + 1);
  }
  spread_equals(answer);
  change_.seconds_search += seconds_since(start);
  edges_ = edges_of(answer.rows());
  if (model_.rules_.repair && !leaving_.empty()) repair(answer);
}

WeightedEdges PointUpdate::edges_of(const FoundRows& rows) const {
  const uint32_t threads = model_.engine_.threads();
  return weighted(nearest_edges(rows, model_.rules_.n_neighbors, poll_, threads),
                  model_.similarity_, model_.rules_.least_weight, threads);
}

void PointUpdate::repair(const Answer& answer) {
  const size_t k = model_.rules_.n_neighbors, others = std::max<size_t>(n_points(), 1) - 1;
  const auto enough = static_cast<int64_t>(std::min((k + 1) / 2, others));
  const Vec<int64_t> lonely = points_to_repair(model_.engine_, table_, leaving_, edges_, enough);
  if (lonely.empty()) return;
  const auto start = Clock::now();
  Answer more = ask(lonely, table_.vectors_of(lonely), std::min(k, others) + 1);
  spread_equals(more);
  change_.seconds_search += seconds_since(start);
  const JoinedRows rows(answer.rows(), more.rows());
  edges_ = edges_of(rows.view());
  change_.repaired = model_.ids_of(lonely);
}

// A point whose nearest are all equal to it is joined to those that arrived next to it. By slot,
// all of many equal points would be joined to the same few, and every change of one of these would
// change as many edges as there are points.
void PointUpdate::spread_equals(Answer& answer) {
  const size_t k = model_.rules_.n_neighbors, width = answer.result.width;
  const auto found = [&](size_t row) {
    return std::span(answer.result.slots).subspan(row * width, width);
  };
  const auto all_equal = [&](size_t row) {
    const auto distances = std::span(answer.result.distances).subspan(row * width, width);
    if (distances.empty() || distances.front() != distances.back()) return false;
    size_t others = 0;
    for (const int64_t slot : found(row)) {
      if (slot == answer.own[row]) continue;
      if (others == k || slot < 0 || !table_.equal(slot, answer.own[row])) break;
      ++others;
    }
    return others >= k;
  };
  constexpr size_t kRows = size_t{1} << 12;  // of one piece of parallel work
  Vec<Vec<size_t>> rows(Workers::ranges(answer.own.size(), kRows));
  Workers workers(model_.engine_.threads());
  workers.for_ranges_numbered(answer.own.size(), kRows,
                              [&](size_t range, size_t begin, size_t end, uint32_t) {
                                for (size_t row = begin; row < end; ++row) {
                                  if (all_equal(row)) rows[range].push_back(row);
                                }
                              });
  for (const size_t row : rows | std::views::join) {
    const Vec<int64_t> equals = table_.equals_around(answer.own[row], k);
    std::ranges::fill(found(row), -1);
    std::ranges::copy(equals, found(row).begin());
  }
}

PointUpdate::Answer PointUpdate::ask(std::span<const int64_t> own, std::span<const float> vectors,
                                     size_t k) {
  return {own, dynhac::search(*index_, vectors, table_.dimension(), k, poll_)};
}

Change PointUpdate::apply() {
  const Vec<int64_t> removed = table_.keys_of(leaving_);
  if (text_) {
    gone_.insert(gone_.end(), removed.begin(), removed.end());
    std::ranges::sort(gone_);
    gone_.erase(std::ranges::unique(gone_).begin(), gone_.end());
  }
  {
    Workers workers(model_.engine_.threads());
    const Workers::Session session(workers);
    table_.to_keys(edges_.u, workers);  // in place: there may be very many
    table_.to_keys(edges_.v, workers);
  }
  const Batch batch{removed, keys_, {}, {}, edges_.u, edges_.v, edges_.weights};
  try {
    return model_.engine_.update(batch, poll_, window_.clock(), [&] { edges_ = {}; });
  } catch (const BatchError& error) {
    const std::string_view kind = error.kind;
    if (!kind.starts_with("weight") && !kind.starts_with("total")) throw;
    const auto at = static_cast<size_t>(error.index);
    IdColumn ends{text_, {edges_.u[at], edges_.v[at]}, {}};
    if (ends.text) ends.texts = model_.ids_.texts(ends.ints);
    throw EdgeError(error, std::move(ends), edges_.weights[at]);
  }
}

void PointUpdate::commit() noexcept {
  journal_.close();
  table_.commit(leaving_);
  if (text_) {
    std::erase_if(gone_, [&](int64_t key) { return model_.engine_.contains(key); });
    model_.ids_.commit(gone_);
  }
  model_.window_ = window_;
  if (new_points_ > 0 && model_.table_ == nullptr) model_.set_table(shared_table_);
  if (new_index_) {
    model_.index_ = *std::move(new_index_);
    model_.index_lost_ = false;
  }
  model_.index_saved_ = false;
  ++model_.version_;
}

}  // namespace dynhac
