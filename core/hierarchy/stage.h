// Turns a user's batch into changes of level 0: ids become vertices, weights become fixed point,
// and the batch is validated.

#ifndef DYNHAC_HIERARCHY_STAGE_H_
#define DYNHAC_HIERARCHY_STAGE_H_

#include "core/hierarchy/engine.h"

namespace dynhac {

struct SlotOfEnd {
  uint32_t at = kNone;
};

class Engine::Stage {
 public:
  explicit Stage(Engine& engine) : engine_(engine) {}

  // Fills pending_ of the engine. Creates the vertices and leaves of new ids and rewrites its ids_,
  // within the transaction. Throws BatchError.
  void run(const Batch& batch, Poll* poll);

 private:
  // The part of the batch's edges that one thread works on: those of some owners.
  struct Share {
    Vec<Vertex> owners;         // in order of first appearance
    Vec<uint32_t> owner_begin;  // their edges
    Vec<Delta> grouped;         // a buffer
    FlatMap<SlotOfEnd> slots;   // of other ends
  };

  Engine& engine_;
  Batch batch_;
  Pace pace_;

  void remove_edges();
  void remove_vertices();
  void add_vertices();
  void insert_ids();
  void insert_ids_one_by_one();
  void resolve_edges();
  void resolve(size_t begin, size_t end);
  void split_edges();
  std::pair<Vertex, Vertex> owners();
  size_t split(std::span<Delta> edges, Share& share, bool alone, Vec<Delta>& deltas);
  void group_by_owner(std::span<Delta> edges, Share& share);
  size_t drop_duplicates(std::span<Delta> edges, Share& share, bool alone);
  size_t set_weights(std::span<Delta> edges, Vec<Delta>& deltas);
  void add_up_weights();
  Vertex find_end(int64_t key, size_t index, size_t end, const char* kind) const;
  Weight weight(size_t index) const {
    return fixed_point(batch_.w[index], engine_.resolution_, index);
  }
  bool is_new(Vertex v) const { return engine_.levels_[0]->cold[v].state == State::kCreated; }
  size_t index_of(Vertex a, Vertex b) const;
  [[noreturn]] void report_conflict(Vertex a, Vertex b) const;

  Vec<Delta> edges_;   // to set; a is the owner
  Vec<Delta> unset_;   // to remove; sorted by ends, every pair once
  Vec<Share> shares_;  // by hand
  NewSlots vertices_, leaves_;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_STAGE_H_
