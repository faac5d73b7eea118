#include "core/hierarchy/text_batch.h"

namespace dynhac {

Change apply_text_batch(Engine& engine, IdTable& ids, const TextBatch& batch, Poll* poll) {
  if (!engine.steps_waiting()) ids.forget_retired();
  const Vec<int64_t> add = ids.reserve(batch.add);
  try {
    Vec<int64_t> removed = ids.keys(batch.remove);
    const Vec<int64_t> remove_u = ids.keys(batch.remove_u), remove_v = ids.keys(batch.remove_v);
    const Vec<int64_t> u = ids.keys(batch.u), v = ids.keys(batch.v);
    Change change = engine.update({removed, add, remove_u, remove_v, u, v, batch.w}, poll);
    std::erase_if(removed, [&](int64_t key) { return engine.contains(key); });
    ids.commit(removed);
    return change;
  } catch (...) {
    ids.release();
    throw;
  }
}

}  // namespace dynhac
