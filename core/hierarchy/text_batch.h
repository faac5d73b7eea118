// Batches of changes whose ids are texts.

#ifndef DYNHAC_HIERARCHY_TEXT_BATCH_H_
#define DYNHAC_HIERARCHY_TEXT_BATCH_H_

#include <span>

#include "core/base/id_table.h"
#include "core/base/texts.h"
#include "core/hierarchy/engine.h"

namespace dynhac {

// As `Batch`.
struct TextBatch {
  Texts remove, add, remove_u, remove_v, u, v;
  std::span<const double> w;
};

// Updates engine and ids together, all or nothing. Throws what Engine::update does.
Change apply_text_batch(Engine& engine, IdTable& ids, const TextBatch& batch, Poll* poll);

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_TEXT_BATCH_H_
