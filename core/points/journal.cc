#include "core/points/journal.h"

namespace dynhac {

Journal::Journal(PointTable& table, IdTable& ids, NeighborIndex* index, bool& index_lost,
                 bool& index_changed)
    : table_(table),
      ids_(ids),
      index_(index),
      index_lost_(index_lost),
      index_changed_(index_changed),
      index_size_(table.size()),
      kind_before_(table.kind()) {
  index_changed_ = false;
}

Journal::~Journal() {
  if (!open_) return;
  undo_index();
  ids_.release();
  table_.give_back();
  table_.recode(kind_before_);
}

Vec<int64_t> Journal::reserve_slots(const PointTable::NewPoints& points,
                                    std::span<const int64_t> leaving) {
  return table_.reserve(points, leaving);
}

Vec<int64_t> Journal::reserve_keys(const Texts& ids) {
  return ids_.reserve(ids);
}

template <class Call>
void Journal::change(NeighborIndex& index, const Step& step, Call call) {
  if (&index != index_) return call();
  index_changed_ = true;
  try {
    call();
  } catch (...) {
    if (has_changed()) steps_[n_steps_++] = step;
    throw;
  }
  steps_[n_steps_++] = step;
  index_size_ += step.added ? step.slots.size() : -step.slots.size();
}

bool Journal::has_changed() noexcept {
  try {
    return index_->intact() && index_->size() != index_size_;
  } catch (...) {
    index_lost_ = true;
    return false;
  }
}

void Journal::add(NeighborIndex& index, std::span<const int64_t> slots,
                  std::span<const float> vectors, Poll* poll) {
  change(index, {true, slots}, [&] { index.add(slots, vectors, poll); });
}

void Journal::remove(NeighborIndex& index, std::span<const int64_t> slots, Poll* poll) {
  change(index, {false, slots}, [&] { index.remove(slots, poll); });
}

void Journal::undo_index() noexcept {
  if (index_ == nullptr || index_lost_) return;
  index_lost_ = true;
  try {
    if (!index_->intact()) return;
    const bool undone = n_steps_ > 0;
    while (n_steps_ > 0) {
      const Step& step = steps_[--n_steps_];
      if (step.added) {
        index_->remove(step.slots, nullptr);
      } else {
        index_->add(step.slots, table_.vectors_of(step.slots), nullptr);
      }
    }
    index_lost_ = !index_->intact() || (undone && index_->size() != table_.size());
  } catch (...) {
    // The index stays lost. The error that stopped the update is the one that is raised.
  }
}

}  // namespace dynhac
