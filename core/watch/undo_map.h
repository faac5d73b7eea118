// A FlatMap whose changes since the last commit() can be undone.

#ifndef DYNHAC_WATCH_UNDO_MAP_H_
#define DYNHAC_WATCH_UNDO_MAP_H_

#include "core/base/flat_map.h"
#include "core/base/memory.h"

namespace dynhac {

template <class Value>
class UndoMap {
 public:
  const Value* find(int64_t key) const { return map_.find(key); }
  size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }

  void set(int64_t key, const Value& value) {
    save(key);
    map_[key] = value;
  }
  void erase(int64_t key) {
    if (!map_.contains(key)) return;
    save(key);
    map_.erase(key);
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    map_.for_each(visit);
  }

  void commit() noexcept {
    if (saved_.capacity() > 1024) {
      Vec<Saved>().swap(saved_);
    } else {
      saved_.clear();
    }
  }

  // The sizes that the map had come back in reverse order, so no insertion needs memory.
  void rollback() noexcept {
    for (size_t i = saved_.size(); i-- > 0;) {
      if (saved_[i].present) {
        map_[saved_[i].key] = saved_[i].value;
      } else {
        map_.erase(saved_[i].key);
      }
    }
    commit();
  }

 private:
  struct Saved {
    int64_t key;
    bool present;
    Value value;
  };

  void save(int64_t key) {
    const Value* old = map_.find(key);
    saved_.push_back({key, old != nullptr, old == nullptr ? Value() : *old});
  }

  FlatMap<Value, int64_t> map_;
  Vec<Saved> saved_;
};

}  // namespace dynhac

#endif  // DYNHAC_WATCH_UNDO_MAP_H_
