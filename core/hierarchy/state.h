// The persistent form of an engine: everything that the next update depends on, as named columns.
//
// Between updates an engine consists of its levels, its nodes and a few counts. The columns hold
// what cannot be computed from the rest. Handles, the order of adjacency entries (including dead
// ones), the capacities of lists and the lists of free slots all affect later updates, and are
// saved unchanged. So later updates of a loaded engine give bit for bit the same results as those
// of the original. Not saved: epochs, which restart, scratch, addresses, and the order of hash
// maps.
//
//   counts               int64    version, next merge id, next leaf id, first free node, the last
//                                 level, and the first free vertex of every level (-1: none)
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
#include <iterator>
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
  // the first call to the last. No lock is taken: these functions may be called in a forked child.
  static std::vector<std::string> names(const Engine& engine);
  static SavedColumn save(const Engine& engine, size_t index, Workers& workers);  // of names()
  static Vec<int64_t> keys(const Engine& engine);                                 // as Engine::keys

  // Throws std::invalid_argument if the columns are not the state of an engine with these
  // parameters, and what `poll` throws.
  static std::unique_ptr<Engine> load(const EngineParameters& parameters,
                                      const StateColumns& columns, Poll* poll = nullptr);

 private:
  class Loader;
};

// The fields that are saved as columns, in this order.
namespace state {

template <class... Fields>
struct Column {
  const char* name;
  std::variant<Fields...> field;
};

inline constexpr Column<int64_t Node::*, double Node::*, uint32_t Node::*> kNodeColumns[] = {
    {"id", &Node::id},      {"similarity", &Node::similarity}, {"least_merge", &Node::least_merge},
    {"left", &Node::left},  {"right", &Node::right},           {"size", &Node::size},
    {"level", &Node::level}};

// The columns of a level.
inline constexpr Column<uint32_t Role::*, double Role::*, uint32_t Cold::*> kSlotColumns[] = {
    {"image", &Role::image}, {"hi", &Role::hi},
    {"node", &Cold::node},   {"next", &Cold::next},
    {"first", &Cold::first}, {"capacity", &Cold::capacity},
    {"used", &Cold::used},   {"free_entry", &Cold::free_slots}};
inline constexpr Column<uint32_t Entry::*, Weight Entry::*> kEntryColumns[] = {
    {"neighbor", &Entry::neighbour}, {"mirror", &Entry::mirror}, {"weight", &Entry::weight}};
inline constexpr size_t kLevelColumns = std::size(kSlotColumns) + std::size(kEntryColumns);

// The records that a field of kSlotColumns belongs to.
template <class AnyLevel, class T>
auto& records(AnyLevel& level, T Role::*) {
  return level.role;
}
template <class AnyLevel, class T>
auto& records(AnyLevel& level, T Cold::*) {
  return level.cold;
}

inline constexpr size_t kCountsBefore = 5;  // counts before those of the levels

inline std::string level_column(size_t level, const char* name) {
  return "levels/" + std::to_string(level) + "/" + name;
}

}  // namespace state
}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_STATE_H_
