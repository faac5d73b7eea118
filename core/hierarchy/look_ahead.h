// Prefetches, while one level is updated, what the update of the next level will read.
//
// What changes on a level is nearly always the image of what changed below. So the records that an
// update will need are known early, but they form a chain of pointers to distant memory. The
// prefetches are therefore spread over the steps of the level below, each made after the load that
// it depends on has had time to complete. They are hints: a wrong guess costs a few loads.

#ifndef DYNHAC_HIERARCHY_LOOK_AHEAD_H_
#define DYNHAC_HIERARCHY_LOOK_AHEAD_H_

#include <algorithm>
#include <span>

#include "core/hierarchy/level.h"
#include "core/hierarchy/node_store.h"

namespace dynhac {

class LookAhead {
 public:
  explicit LookAhead(const NodeStore& nodes) : nodes_(nodes) {}

  // `image` is the vertex of `high` that will probably change, or kNone; `top` is the level above
  // `high`, or nullptr.
  void fetch_image(const Level& high, const Level* top, Vertex image) {
    high_ = &high;
    top_ = top;
    image_ = image;
    group_ = first_ = kNone;
    if (image_ != kNone) high_->prefetch(image_);
  }

  void fetch_edges() {
    if (image_ == kNone) return;
    high_->prefetch_edges(image_, kFarthest);
    if (top_ != nullptr) group_ = high_->role[image_].image;
    if (group_ != kNone) top_->prefetch(group_);
  }

  void fetch_neighbours() {
    if (image_ == kNone) return;
    const std::span<const Entry> entries = high_->edges(image_);
    for (const Entry& e : entries.first(std::min<size_t>(entries.size(), kFarthest))) {
      __builtin_prefetch(&high_->hot[e.neighbour]);
      __builtin_prefetch(&high_->role[e.neighbour]);
    }
    if (group_ == kNone) return;
    first_ = top_->cold[group_].first;
    if (first_ != kNone) high_->prefetch(first_);
    nodes_.prefetch(top_->cold[group_].node);
  }

  void fetch_members() const {
    if (first_ == kNone) return;
    high_->prefetch_edges(first_, kNear);
    if (const Vertex next = high_->cold[first_].next; next != kNone) high_->prefetch(next);
    if (const Node& node = nodes_[top_->cold[group_].node]; !node.is_leaf()) {
      nodes_.prefetch(node.left);
      nodes_.prefetch(node.right);
    }
  }

 private:
  static constexpr uint32_t kNear = 16, kFarthest = 64;  // entries of a list

  const NodeStore& nodes_;
  const Level* high_ = nullptr;
  const Level* top_ = nullptr;
  Vertex image_ = kNone;
  Vertex group_ = kNone;  // the image of image_, on `top`
  Vertex first_ = kNone;  // the first member of its group
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_LOOK_AHEAD_H_
