#include "core/points/point_model.h"

#include <utility>

#include "core/points/point_update.h"

namespace dynhac {

PointModel::PointModel(Engine& engine, IdTable& ids, const Similarity& similarity,
                       IndexChooser& chooser, const PointRules& rules, const Window& window,
                       IndexChoice index)
    : engine_(engine),
      ids_(ids),
      similarity_(similarity),
      chooser_(chooser),
      rules_(rules),
      window_(window),
      index_(std::move(index)) {}

PointChange PointModel::update(const PointBatch& batch, Poll* poll) {
  return PointUpdate(*this, batch, poll).run();
}

void PointModel::build_index(IndexChoice index, Poll* poll) {
  fill(*index.index, table_, poll);
  index_ = std::move(index);
}

IdColumn PointModel::ids_of(std::span<const int64_t> slots) const {
  IdColumn ids;
  ids.text = ids_.used();
  if (slots.empty()) return ids;
  ids.ints = table_->keys_of(slots);
  if (!ids.text) return ids;
  ids.texts = ids_.texts(ids.ints);
  ids.ints.clear();
  return ids;
}

Vec<int64_t> PointModel::find(const IdColumn& ids) const {
  Vec<int64_t> slots = ids.text ? ids_.keys(ids.texts) : ids.ints;
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i] = table_ == nullptr ? -1 : table_->find(slots[i]);
    if (slots[i] < 0) throw BatchError("unknown_id", i);
  }
  return slots;
}

}  // namespace dynhac
