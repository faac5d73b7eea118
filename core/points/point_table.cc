#include "core/points/point_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <ranges>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace dynhac {

int64_t order_of(double time) {
  const auto bits = std::bit_cast<int64_t>(time + 0.0);
  return bits >= 0 ? bits : bits ^ std::numeric_limits<int64_t>::max();
}

double time_of(int64_t order) {
  return std::bit_cast<double>(order >= 0 ? order : order ^ std::numeric_limits<int64_t>::max());
}

Number time_from(TimeKind kind, int64_t order) {
  return kind == TimeKind::kFloats ? Number(time_of(order)) : Number(order);
}

PointTable::PointTable(size_t dimension, State state)
    : dimension_(dimension),
      top_(state.keys.size()),
      keys_(std::move(state.keys)),
      arrival_(std::move(state.arrival)),
      vectors_(std::move(state.vectors)),
      next_arrival_(state.next_arrival),
      next_id_(state.next_id),
      kind_(state.kind),
      times_(std::move(state.times)) {
  if (arrival_.size() != top_ || vectors_.size() != top_ * dimension_ ||
      times_.size() != (kind_ == TimeKind::kNone ? 0 : top_)) {
    throw std::invalid_argument("the columns of the points have different lengths");
  }
  slot_of_.reserve(top_);
  Vec<int64_t> arrivals;
  for (size_t slot = 0; slot < top_; ++slot) {
    if (arrival_[slot] < 0) {
      arrival_[slot] = kFree;
      free_.push_back(static_cast<int64_t>(slot));  // ascending, which is a heap
      continue;
    }
    if (!slot_of_.insert(keys_[slot], static_cast<int64_t>(slot)).second) {
      throw std::invalid_argument("two points have one key");
    }
    arrivals.push_back(arrival_[slot]);
  }
  std::sort(arrivals.begin(), arrivals.end());
  if (std::adjacent_find(arrivals.begin(), arrivals.end()) != arrivals.end()) {
    throw std::invalid_argument("two points have one place in the order of arrival");
  }
  constexpr int64_t kMostArrivals = int64_t{1} << 62;
  if (next_arrival_ < 0 || next_arrival_ > kMostArrivals) {
    throw std::invalid_argument("the number of arrivals is out of range");
  }
  if (!arrivals.empty() && arrivals.back() >= next_arrival_) {
    throw std::invalid_argument("a point has arrived later than the last one");
  }
}

size_t PointTable::bytes() const {
  return vectors_.capacity() * sizeof(float) + slot_of_.capacity() * 2 * sizeof(int64_t) +
         (keys_.capacity() + arrival_.capacity() + free_.capacity()) * sizeof(int64_t) +
         times_.capacity() * sizeof(int64_t) + ages_.capacity() * sizeof(Age) +
         (equals_ ? equals_->bytes() : 0);
}

Vec<int64_t> PointTable::used() const {
  Vec<int64_t> slots;
  slots.reserve(size());
  for (size_t slot = 0; slot < top_; ++slot) {
    if (arrival_[slot] >= 0) slots.push_back(static_cast<int64_t>(slot));
  }
  return slots;
}

Vec<int64_t> PointTable::in_order() const {
  Vec<int64_t> slots = used();
  std::sort(slots.begin(), slots.end(),
            [&](int64_t a, int64_t b) { return arrival_[at(a)] < arrival_[at(b)]; });
  return slots;
}

bool PointTable::later(const Age& a, const Age& b) {
  return std::tie(a.time, a.arrival) > std::tie(b.time, b.arrival);
}

void PointTable::make_ages() {
  Vec<Age> ages;
  make_room(ages, size());
  for (const int64_t slot : used()) ages.push_back({time(slot), arrival(slot), slot});
  std::make_heap(ages.begin(), ages.end(), later);
  ages_ = std::move(ages);
  has_ages_ = true;
}

void PointTable::drop_stale_ages() noexcept {
  std::erase_if(ages_, [&](const Age& age) { return stale(age); });
  std::make_heap(ages_.begin(), ages_.end(), later);
}

Vec<int64_t> PointTable::oldest(size_t count, const Window& window,
                                std::span<const int64_t> excluded) {
  if (!has_ages_) make_ages();
  while (!ages_.empty() && stale(ages_.front())) {
    std::pop_heap(ages_.begin(), ages_.end(), later);
    ages_.pop_back();
  }
  Vec<int64_t> sorted(excluded.begin(), excluded.end());
  std::sort(sorted.begin(), sorted.end());
  Vec<int64_t> slots;
  // Entries taken from the heap stand behind it until the destructor puts them back.
  struct Heap {
    Vec<Age>& ages;
    Vec<Age>::iterator end = ages.end();
    ~Heap() {
      while (end != ages.end()) std::push_heap(ages.begin(), ++end, later);
    }
  } heap{ages_};
  while (heap.end != ages_.begin()) {
    const Age& age = ages_.front();
    if (slots.size() >= count && !window.too_old(time_from(kind_, age.time))) break;
    if (!stale(age) && !std::binary_search(sorted.begin(), sorted.end(), age.slot)) {
      slots.push_back(age.slot);
    }
    std::pop_heap(ages_.begin(), heap.end--, later);
  }
  return slots;
}

bool PointTable::exact_as_floats() const {
  constexpr int64_t kLargest = int64_t{1} << 53;
  if (kind_ == TimeKind::kFloats) return true;
  return std::ranges::all_of(
      used(), [&](int64_t slot) { return -kLargest <= time(slot) && time(slot) <= kLargest; });
}

void PointTable::recode(TimeKind kind) noexcept {
  if (kind == kind_) return;
  const auto recoded = [&](int64_t order) {
    return kind == TimeKind::kFloats ? order_of(static_cast<double>(order))
                                     : static_cast<int64_t>(time_of(order));
  };
  for (size_t slot = 0; slot < top_; ++slot) {
    if (arrival_[slot] >= 0) times_[slot] = recoded(times_[slot]);
  }
  drop_stale_ages();
  for (Age& age : ages_) age.time = recoded(age.time);
  std::make_heap(ages_.begin(), ages_.end(), later);
  kind_ = kind;
}

size_t PointTable::at(int64_t slot) const {
  if (slot < 0 || static_cast<size_t>(slot) >= keys_.size()) throw std::out_of_range("slot");
  return static_cast<size_t>(slot);
}

int64_t PointTable::arrival(int64_t slot) const {
  if (slot < 0 || static_cast<size_t>(slot) >= top_) return kFree;
  return arrival_[static_cast<size_t>(slot)];
}

Vec<int64_t> PointTable::keys_of(std::span<const int64_t> slots) const {
  Vec<int64_t> keys(slots.begin(), slots.end());
  for (int64_t& slot : keys) slot = keys_[at(slot)];
  return keys;
}

void PointTable::to_keys(std::span<int64_t> slots, Workers& workers) const {
  constexpr size_t kSlots = size_t{1} << 15;  // of one piece of parallel work
  workers.for_ranges(slots.size(), kSlots, [&](size_t begin, size_t end, uint32_t) {
    for (int64_t& slot : slots.subspan(begin, end - begin)) slot = keys_[at(slot)];
  });
}

Vec<float> PointTable::vectors_of(std::span<const int64_t> slots) const {
  Vec<float> vectors;
  vectors.reserve(slots.size() * dimension_);
  for (const int64_t slot : slots) {
    const float* begin = vectors_.data() + at(slot) * dimension_;
    vectors.insert(vectors.end(), begin, begin + dimension_);
  }
  return vectors;
}

int64_t PointTable::find(int64_t key) const {
  const int64_t* slot = slot_of_.find(key);
  return slot == nullptr ? -1 : *slot;
}

template <class T>
Vec<T> PointTable::saved(const Vec<T>& column, size_t width) const {
  if (column.empty()) return {};
  Vec<T> values(column.begin(), column.begin() + static_cast<ptrdiff_t>(top_ * width));
  for (size_t slot = 0; slot < top_; ++slot) {
    if (arrival_[slot] >= 0) continue;
    std::fill_n(values.begin() + static_cast<ptrdiff_t>(slot * width), width, T{0});
  }
  return values;
}

Vec<int64_t> PointTable::saved_keys() const {
  return saved(keys_, 1);
}

Vec<int64_t> PointTable::saved_arrival() const {
  return {arrival_.begin(), arrival_.begin() + static_cast<ptrdiff_t>(top_)};
}

Vec<float> PointTable::saved_vectors() const {
  return saved(vectors_, dimension_);
}

Vec<int64_t> PointTable::saved_times() const {
  return saved(times_, 1);
}

PointTable::State PointTable::state() const {
  return {saved_keys(),  saved_arrival(), saved_vectors(), kind_,
          saved_times(), next_arrival_,   next_id_};
}

Vec<int64_t> PointTable::reserve(const NewPoints& points, std::span<const int64_t> leaving) {
  const size_t count = points.arrivals.size();
  const bool timed = kind_ != TimeKind::kNone;
  if (points.vectors.size() != count * dimension_ || points.times.size() != (timed ? count : 0)) {
    throw std::invalid_argument("vectors, times and arrivals of new points");
  }
  if (has_ages_) {
    constexpr size_t kSlack = 64;  // so many stale entries are never worth a cleaning
    if (ages_.size() > 2 * size() + kSlack) drop_stale_ages();
    make_room(ages_, ages_.size() + count);
  }
  const size_t length = std::max(keys_.size(), top_ + count - std::min(count, free_.size()));
  Vec<int64_t> slots;
  slots.reserve(count);
  pending_.slots.reserve(count);
  pending_.arrivals.assign(points.arrivals.begin(), points.arrivals.end());
  pending_.leaving.reserve(leaving.size());
  make_room(keys_, length);
  make_room(arrival_, length);
  make_room(vectors_, length * dimension_);
  if (timed) make_room(times_, length);
  make_room(free_, free_.size() + leaving.size());
  slot_of_.reserve(size() + count);
  if (equals_) equals_->reserve(length, vectors_);
  // Nothing below can fail.
  keys_.resize(length);
  arrival_.resize(length, kFree);
  vectors_.resize(length * dimension_);
  if (timed) times_.resize(length);
  while (slots.size() < count && !free_.empty()) slots.push_back(pop_free());
  for (auto next = static_cast<int64_t>(top_); slots.size() < count; ++next) slots.push_back(next);
  for (size_t i = 0; i < count; ++i) {
    std::copy_n(points.vectors.begin() + static_cast<ptrdiff_t>(i * dimension_), dimension_,
                vectors_.begin() + slots[i] * static_cast<ptrdiff_t>(dimension_));
    if (timed) times_[static_cast<size_t>(slots[i])] = points.times[i];
  }
  pending_.slots.assign(slots.begin(), slots.end());
  pending_.leaving.assign(leaving.begin(), leaving.end());
  pending_.next_arrival = points.next_arrival;
  pending_.next_id = points.next_id;
  if (equals_) link_pending();
  return slots;
}

void PointTable::link_pending() noexcept {
  for (const int64_t slot : pending_.leaving) equals_->unlink(slot, vectors_);
  for (const int64_t slot : pending_.slots) equals_->link(slot, vectors_);
}

bool PointTable::equal(int64_t a, int64_t b) const {
  const auto row_of = [&](int64_t slot) {
    return std::span(vectors_).subspan(at(slot) * dimension_, dimension_);
  };
  return std::ranges::equal(row_of(a), row_of(b));
}

Vec<int64_t> PointTable::equals_around(int64_t slot, size_t count) {
  if (!equals_) {
    EqualPoints equals(dimension_);
    equals.reserve(keys_.size(), vectors_);
    for (const int64_t each : in_order()) equals.link(each, vectors_);
    equals_ = std::move(equals);
    link_pending();
  }
  return equals_->around(slot, count, vectors_);
}

void PointTable::name(std::span<const int64_t> keys) {
  if (keys.size() != pending_.slots.size()) throw std::invalid_argument("keys");
  for (size_t i = 0; i < keys.size(); ++i) keys_[at(pending_.slots[i])] = keys[i];
}

void PointTable::give_back() noexcept {
  if (equals_) {
    for (const int64_t slot : pending_.slots | std::views::reverse) equals_->unlink(slot, vectors_);
    for (const int64_t slot : pending_.leaving | std::views::reverse) {
      equals_->relink(slot, vectors_);
    }
  }
  for (const int64_t slot : pending_.slots) {
    if (static_cast<size_t>(slot) < top_) push_free(slot);
  }
  pending_.slots.clear();
  pending_.leaving.clear();
}

void PointTable::commit(std::span<const int64_t> leaving) noexcept {
  for (const int64_t slot : leaving) {
    slot_of_.erase(keys_[static_cast<size_t>(slot)]);
    arrival_[static_cast<size_t>(slot)] = kFree;
    push_free(slot);
  }
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < pending_.slots.size(); ++i) {
    if (i + kAhead < pending_.slots.size()) {
      slot_of_.prefetch(keys_[static_cast<size_t>(pending_.slots[i + kAhead])]);
    }
    const auto slot = static_cast<size_t>(pending_.slots[i]);
    arrival_[slot] = pending_.arrivals[i];
    slot_of_.insert(keys_[slot], pending_.slots[i]);
    if (has_ages_) {
      ages_.push_back({time(pending_.slots[i]), arrival_[slot], pending_.slots[i]});
      std::push_heap(ages_.begin(), ages_.end(), later);
    }
    top_ = std::max(top_, slot + 1);
  }
  next_arrival_ = pending_.next_arrival;
  next_id_ = pending_.next_id;
  recycle(pending_.slots);
  recycle(pending_.arrivals);
  recycle(pending_.leaving);
}

void PointTable::push_free(int64_t slot) noexcept {
  free_.push_back(slot);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

int64_t PointTable::pop_free() {
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int64_t slot = free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace dynhac
