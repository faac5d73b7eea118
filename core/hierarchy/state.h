// The persistent form of an engine: everything that the next update depends on, as named columns.
//
// Between updates an engine consists of its levels, its nodes and a few counts. The columns hold
// what cannot be computed from the rest. Handles, the order of adjacency entries (including dead
// ones), the capacities of lists and the lists of free slots all affect later updates, and are
// saved unchanged. So later updates of a loaded engine give bit for bit the same results as those
// of the original. Not saved: epochs, which restart, scratch, addresses, and the order of hash
// maps.
//
//   counts               int64    version, next merge id, next leaf id, first free node, and the
//                                 first free vertex of every level (-1: none)
//   nodes/...            by slot  id, similarity, least_merge, left, right, size, level. Size 0 is
//                                 a free slot; its left is the next one
//   keys                 int64    by vertex of level 0; 0 for free slots
//   levels/<i>/...       by slot  image, hi, node, next, first, capacity, used, free_entry. Node
//                                 kNone is a free slot; its next is the next one
//   levels/<i>/neighbor  by entry, vertex after vertex; also mirror. If the neighbour is the
//                                 vertex itself, the entry is dead; its mirror is the next dead one
//   levels/<i>/weight    by edge: of the entries whose neighbour is the larger end, in their order
//
// load() trusts no input: every handle, list, sum and certificate is checked, and the engine that
// it returns has passed the audit. It takes time and memory proportional to the columns.

#ifndef DYNHAC_HIERARCHY_STATE_H_
#define DYNHAC_HIERARCHY_STATE_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/hierarchy/engine.h"

namespace dynhac {

using SavedColumn = std::variant<Vec<uint32_t>, Vec<int64_t>, Vec<double>>;
using StateColumn =
    std::variant<std::span<const uint32_t>, std::span<const int64_t>, std::span<const double>>;
using StateColumns = std::map<std::string, StateColumn, std::less<>>;

struct EngineParameters {  // as for the constructor, and valid
  double epsilon, threshold, resolution;
  uint32_t threads;
};

class EngineState {
 public:
  // One column at a time, so that a save needs little memory. The caller must prevent updates from
  // the first call to the last.
  static std::vector<std::string> names(const Engine& engine);
  static SavedColumn save(const Engine& engine, size_t index);  // of names()

  // Throws std::invalid_argument if the columns are not the state of an engine with these
  // parameters.
  static std::unique_ptr<Engine> load(const EngineParameters& parameters,
                                      const StateColumns& columns);

 private:
  class Loader;
  static SavedColumn save_counts(const Engine& engine);
  static SavedColumn save_nodes(const NodeStore& store, size_t index);
  static SavedColumn save_keys(const Engine& engine);
  static SavedColumn save_level(const Level& level, size_t index);
};

// The columns of a state, in the order in which they are saved.
namespace state {

inline constexpr const char* kNodeColumns[] = {"id",    "similarity", "least_merge", "left",
                                               "right", "size",       "level"};
inline constexpr const char* kLevelColumns[] = {"image",    "hi",       "node",  "next",
                                                "first",    "capacity", "used",  "free_entry",
                                                "neighbor", "mirror",   "weight"};
inline constexpr size_t kCountsBefore = 4;  // counts before those of the levels

inline std::string level_column(size_t level, const char* name) {
  return "levels/" + std::to_string(level) + "/" + name;
}

}  // namespace state
}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_STATE_H_
