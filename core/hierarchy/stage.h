// Turns a user's batch into changes of level 0: ids become vertices, weights become fixed point,
// and the batch is validated.

#ifndef DYNHAC_HIERARCHY_STAGE_H_
#define DYNHAC_HIERARCHY_STAGE_H_

#include "core/hierarchy/engine.h"

namespace dynhac {

class Engine::Stage {
 public:
  explicit Stage(Engine& engine) : engine_(engine) {}

  // Fills pending_ of the engine. Creates the vertices and leaves of new ids and rewrites its ids_,
  // within the transaction. Throws BatchError.
  void run(const Batch& batch, Poll* poll);

 private:
  Engine& engine_;
  Batch batch_;
  Pace pace_;

  void remove_edges();
  void remove_vertices();
  void add_vertices();
  void resolve_edges();
  void group_by_owner();
  void find_duplicates();
  void set_weights();
  Vertex find_end(int64_t key, size_t index, size_t end, const char* kind) const;
  Weight weight(size_t index) const {
    return fixed_point(batch_.w[index], engine_.resolution_, index);
  }
  bool is_new(Vertex v) const { return engine_.levels_[0]->cold[v].state == State::kCreated; }
  size_t index_of(Vertex a, Vertex b) const;
  [[noreturn]] void report_conflict(Vertex a, Vertex b) const;

  Vec<Vertex> owners_;         // in order of first appearance
  Vec<uint32_t> owner_begin_;  // their edges in edges_
  Vec<Delta> edges_;  // to set; after group_by_owner a is the owner, and they are grouped by it
  Vec<Delta> unset_;  // to remove; sorted by ends, every pair once
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_STAGE_H_
